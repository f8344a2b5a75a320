//===- ExecutableApi.cpp - C API of executables ---------------------------===//

#include "Arena.h"
#include "Diagnostics.h"
#include "LoadedExecutable.h"
#include "NumberCode.h"
#include "OpenMp.h"
#include "PackedWeightCache.h"
#include "ProcessorContention.h"
#include "SizeBinding.h"
#include "torch_ltc-c/runtime.h"

using namespace torch_ltc::runtime;

struct LtcExecutableStorage {
  std::unique_ptr<LoadedExecutable> loaded;
};

LtcStatus ltcExecutableLoad(const char *data, size_t size,
                            LtcExecutable *executable) {
  *executable = nullptr;
  return guarded([&]() -> llvm::Error {
    auto loaded = LoadedExecutable::load(data, size);
    if (!loaded)
      return loaded.takeError();
    *executable = new LtcExecutableStorage{std::move(*loaded)};
    return llvm::Error::success();
  });
}

LtcStatus ltcExecutableBind(LtcExecutable general, const LtcSizes *sizes,
                            LtcExecutable *bound) {
  *bound = nullptr;
  return guarded([&]() -> llvm::Error {
    auto loaded = general->loaded->bind(*sizes);
    if (!loaded)
      return loaded.takeError();
    *bound = new LtcExecutableStorage{std::move(*loaded)};
    return llvm::Error::success();
  });
}

LtcStatus ltcSizesCheck(const char *form, size_t size, const LtcSizes *sizes) {
  return guarded([&]() -> llvm::Error {
    GeneralForm parsed;
    bool isValid = parsed.ParseFromArray(form, int(size));
    for (const Number &number : parsed.numbers())
      isValid &= isWellFormed(number, uint32_t(sizes->num_symbols));
    for (uint32_t number : parsed.checks())
      isValid &= number < uint32_t(parsed.numbers_size());
    if (!isValid)
      return failure("The checks of a program for all sizes are corrupt.");
    return checkSizes("for all sizes", parsed, *sizes).takeError();
  });
}

void ltcExecutableDestroy(LtcExecutable executable) { delete executable; }

size_t ltcExecutableNumParameters(LtcExecutable executable) {
  return executable->loaded->description().parameters_size();
}

LtcTensorInfo ltcExecutableParameter(LtcExecutable executable, size_t index) {
  return executable->loaded->parameter(index);
}

size_t ltcExecutableNumScalars(LtcExecutable executable) {
  return executable->loaded->numScalars();
}

int ltcExecutableScalarIsFloat(LtcExecutable executable, size_t index) {
  return executable->loaded->description().scalars(index) == FLOAT;
}

size_t ltcExecutableNumOutputs(LtcExecutable executable) {
  return executable->loaded->description().outputs_size();
}

LtcOutputInfo ltcExecutableOutput(LtcExecutable executable, size_t index) {
  return executable->loaded->output(index);
}

size_t ltcExecutableArenaBytes(LtcExecutable executable) {
  return executable->loaded->description().arena_bytes();
}

size_t ltcArenaPoolBytes(void) { return ArenaPool::process().bytes(); }

size_t ltcPackedWeightBytes(void) { return PackedWeightCache::totalBytes(); }

size_t ltcExecutableNumKernels(LtcExecutable executable) {
  return executable->loaded->description().kernels_size();
}

size_t ltcExecutableNumCommands(LtcExecutable executable) {
  return executable->loaded->description().commands_size();
}

LtcCommandInfo ltcExecutableCommand(LtcExecutable executable, size_t index) {
  const auto &command = executable->loaded->description().commands(int(index));
  return {executable->loaded->commandName(index).c_str(),
          command.location().c_str(),
          command.module_path().c_str(),
          command.result_types().c_str(),
          command.nodes().data(),
          size_t(command.nodes_size())};
}

LtcStatus ltcExecutableRun(LtcExecutable executable,
                           const LtcRunArguments *arguments) {
  return guarded([&] { return executable->loaded->run(*arguments); });
}

void ltcPrepareThreads(int num_threads) {
  ProcessorContention::get().beforeRun(num_threads);
  // Counts threads as libgomp does (GCC 12): those of the calling thread's team
  // and of the step's team without the leaders, plus one for the process.
  if (num_threads > 1 && 2 * (num_threads - 1) + 1 > omp_get_num_procs())
    omp_pause_resource_all(kSoftPause);
}
