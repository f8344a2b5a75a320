//===- CompileGeneralModules.cpp - One executable for all sizes -----------===//
//
// The program is lowered at each sample's stand-ins for the sizes that vary, by
// the same passes as other programs. The results may differ only in numbers.
//
//===----------------------------------------------------------------------===//

#include "torch_ltc/Codegen/CompileLinalgModule.h"

#include "ExecutableBuilder.h"
#include "ExecutableBytes.h"
#include "GeneralizeExecutable.h"
#include "KernelSet.h"

#include "torch_ltc/Codegen/NumberFitter.h"
#include "torch_ltc/Dialect/Ltc/SizeOrder.h"
#include "torch_ltc/Kernels/KernelSchedule.h"
#include "torch_ltc/Kernels/Program.h"

#include <chrono>

using namespace mlir;
using namespace mlir::torch_ltc;

namespace {

/// One program at the stand-ins of one sample.
struct LoweredSample {
  ModuleOp module;
  func::FuncOp program;
  BufferPlan plan;
  runtime::Executable executable;
  std::unique_ptr<KernelSet> kernels;
  DenseMap<Operation *, unsigned> kernelOfCall;
};

using Samples = std::array<LoweredSample, kNumSamples>;

LogicalResult failGeneral(func::FuncOp program, const Twine &why) {
  return program.emitError("the program has no form for all sizes: ") << why;
}

LogicalResult lower(LoweredSample &sample, ModuleOp module,
                    const LinalgCompileOptions &options,
                    const KernelObjectCache &noCache) {
  sample.module = module;
  FailureOr<func::FuncOp> program = findProgram(module);
  FailureOr<BufferPlan> plan = lowerToKernels(module, options);
  if (failed(program) || failed(plan))
    return failure();
  sample.program = *program;
  sample.plan = std::move(*plan);
  sample.kernels =
      std::make_unique<KernelSet>(module, options, noCache, sample.executable);
  for (auto call : sample.program.getBody().getOps<ltc::KernelCallOp>())
    sample.kernelOfCall[call] = sample.kernels->add(call);
  return success();
}

/// Adds the sizes of all tensors of a function to the fitter.
LogicalResult addSizes(const std::array<func::FuncOp, kNumSamples> &functions,
                       NumberFitter &fitter) {
  std::array<SmallVector<RankedTensorType>, kNumSamples> types;
  for (unsigned s = 0; s < kNumSamples; ++s) {
    func::FuncOp function = functions[s];
    auto add = [&](Type type) {
      if (auto tensor = dyn_cast<RankedTensorType>(type))
        types[s].push_back(tensor);
    };
    llvm::for_each(function.getArgumentTypes(), add);
    for (Operation &op : function.getBody().front())
      llvm::for_each(op.getResultTypes(), add);
  }
  for (unsigned s = 1; s < kNumSamples; ++s)
    if (types[s].size() != types[0].size())
      return failGeneral(functions[0], "its ops depend on the sizes");
  for (size_t i = 0; i < types[0].size(); ++i)
    for (int64_t d = 0; d < types[0][i].getRank(); ++d) {
      SizeSamples size;
      for (unsigned s = 0; s < kNumSamples; ++s) {
        if (types[s][i].getRank() != types[0][i].getRank())
          return failGeneral(functions[0], "its ops depend on the sizes");
        size[s] = types[s][i].getDimSize(d);
      }
      fitter.addSize(size);
    }
  return success();
}

/// Adds the block counts of a kernel's loops to the fitter. Returns the blocks
/// of the split axis, if there is one whose size varies, or else of the tiles.
std::optional<KernelBlocks>
addBlocks(const std::array<func::FuncOp, kNumSamples> &kernels,
          NumberFitter &fitter) {
  std::array<ltc::ScheduleAttr, kNumSamples> schedules;
  for (unsigned s = 0; s < kNumSamples; ++s) {
    func::FuncOp kernel = kernels[s];
    schedules[s] = kernel->getAttrOfType<ltc::ScheduleAttr>(kScheduleAttr);
    if (!schedules[s] ||
        schedules[s].getAxes().size() != schedules[0].getAxes().size())
      return std::nullopt;
  }
  auto sizeOf = [&](unsigned axis) {
    SizeSamples size;
    for (unsigned s = 0; s < kNumSamples; ++s)
      size[s] = schedules[s].getAxes()[axis].getSize();
    return size;
  };
  std::optional<KernelBlocks> ofTiles, ofBlocks;
  if (schedules[0].getTile())
    ofTiles = fitter.addBlocks(sizeOf(*schedules[0].getTile()),
                               KernelSchedule::kTileSize);
  // A kernel with many iterations doesn't divide the split axis: its block is
  // as long as the axis.
  auto hasBlock = [&](ltc::ScheduleAttr schedule) {
    return schedule.getBlock() == schedules[0].getBlock();
  };
  if (schedules[0].getSplit() && llvm::all_of(schedules, hasBlock))
    ofBlocks = fitter.addBlocks(sizeOf(*schedules[0].getSplit()),
                                schedules[0].getBlock());
  // The shared codes of both could be equal.
  if (ofTiles && ofTiles->replacement && ofBlocks)
    fitter.assumeEqual(*ofTiles->replacement);
  return ofBlocks ? ofBlocks : ofTiles;
}

LogicalResult addKnownSizes(Samples &samples, NumberFitter &fitter,
                            BlocksOfKernels &blocks) {
  std::array<func::FuncOp, kNumSamples> programs;
  for (unsigned s = 0; s < kNumSamples; ++s)
    programs[s] = samples[s].program;
  if (failed(addSizes(programs, fitter)))
    return failure();
  std::array<SmallVector<ltc::KernelCallOp>, kNumSamples> calls;
  for (unsigned s = 0; s < kNumSamples; ++s)
    llvm::append_range(calls[s],
                       programs[s].getBody().getOps<ltc::KernelCallOp>());
  for (unsigned s = 1; s < kNumSamples; ++s)
    if (calls[s].size() != calls[0].size())
      return failGeneral(programs[0], "its kernels depend on the sizes");
  for (size_t i = 0; i < calls[0].size(); ++i) {
    std::array<func::FuncOp, kNumSamples> kernels;
    for (unsigned s = 0; s < kNumSamples; ++s)
      kernels[s] =
          samples[s].module.lookupSymbol<func::FuncOp>(calls[s][i].getCallee());
    if (failed(addSizes(kernels, fitter)))
      return failure();
    if (auto own = addBlocks(kernels, fitter))
      blocks[samples[0].kernelOfCall.at(calls[0][i])] = *own;
  }
  return success();
}

/// Collects the orders that the samples' code relies on (SizeOrder.h).
LogicalResult findOrders(const Samples &samples,
                         SmallVectorImpl<SizeSamples> &orders) {
  for (unsigned s = 0; s < kNumSamples; ++s) {
    ArrayRef<int64_t> numbers = assumedOrders(samples[s].program);
    if (s && numbers.size() != orders.size())
      return failGeneral(samples[0].program,
                         "the order of its parts depends on the sizes");
    orders.resize(numbers.size());
    for (size_t i = 0; i < numbers.size(); ++i)
      orders[i][s] = numbers[i];
  }
  return success();
}

/// The work of each kernel (kWorkAttr).
SmallVector<SizeSamples> findWork(const Samples &samples) {
  SmallVector<SizeSamples> work(samples[0].executable.kernels_size(),
                                SizeSamples());
  for (unsigned s = 0; s < kNumSamples; ++s)
    for (auto [call, kernel] : samples[s].kernelOfCall) {
      StringRef callee = cast<ltc::KernelCallOp>(call).getCallee();
      Operation *function = ModuleOp(samples[s].module).lookupSymbol(callee);
      if (auto value = function->getAttrOfType<IntegerAttr>(kWorkAttr))
        work[kernel][s] = value.getInt();
    }
  return work;
}

} // namespace

FailureOr<std::string> mlir::torch_ltc::compileGeneralModules(
    ArrayRef<ModuleOp> modules, const GeneralNumbers &numbers,
    const LinalgCompileOptions &options, LinalgCompileStatistics &statistics) {
  using Clock = std::chrono::steady_clock;
  auto secondsSince = [](Clock::time_point start) {
    return std::chrono::duration<double>(Clock::now() - start).count();
  };
  auto start = Clock::now();
  KernelObjectCache noCache;
  Samples samples;
  for (auto [sample, module] : llvm::zip_equal(samples, modules))
    if (failed(lower(sample, module, options, noCache)))
      return failure();
  NumberFitter fitter(numbers.standIns);
  for (auto [i, number] : llvm::enumerate(numbers.checked))
    fitter.addTraced(number, unsigned(i));
  BlocksOfKernels blocks;
  if (failed(addKnownSizes(samples, fitter, blocks)))
    return failure();
  statistics.kernelsSeconds = secondsSince(start);

  start = Clock::now();
  std::vector<std::vector<NumberCode>> tables;
  SmallVector<KernelSet *> others;
  for (LoweredSample &sample : MutableArrayRef(samples).drop_front())
    others.push_back(sample.kernels.get());
  KernelSet &kernels = *samples[0].kernels;
  if (failed(kernels.compileGeneral(others, fitter, tables)))
    return failure();
  for (const auto &[kernel, own] : blocks)
    if (own.replacement)
      for (NumberCode &code : tables[kernel])
        replaceCode(code, *own.replacement);
  std::array<runtime::Executable *, kNumSamples> executables;
  for (auto [sample, executable] : llvm::zip_equal(samples, executables)) {
    executable = &sample.executable;
    describeExecutable(kernels, options, *executable);
    if (failed(ExecutableBuilder(sample.program, sample.plan,
                                 sample.kernelOfCall, *executable)
                   .build()))
      return failure();
  }
  SmallVector<SizeSamples> orders;
  if (failed(findOrders(samples, orders)))
    return failure();
  std::string error = generalizeExecutable(
      executables, numbers, tables, findWork(samples), orders, blocks, fitter);
  if (!error.empty())
    return failGeneral(samples[0].program, error);
  statistics.llvmSeconds = secondsSince(start);
  statistics.kernels = samples[0].executable.kernels_size();
  statistics.kernelsCompiled = kernels.numCompiled();
  statistics.commands = samples[0].executable.commands_size();
  if (options.stageText) {
    options.stageText("llvm", kernels.getTexts().llvm);
    options.stageText("asm", kernels.getTexts().assembly);
  }
  return runtime::serializeExecutable(samples[0].executable);
}
