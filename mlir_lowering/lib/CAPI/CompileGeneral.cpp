//===- CompileGeneral.cpp - Programs for all sizes ------------------------===//

#include "ProgramCompiler.h"

using namespace mlir;
using namespace mlir::torch_ltc;

/// By number instead of by sample.
static SmallVector<SizeSamples> transpose(const int64_t *const *samples,
                                          size_t count) {
  SmallVector<SizeSamples> result(count);
  for (size_t sample = 0; sample < kNumSamples; ++sample)
    for (size_t i = 0; i < count; ++i)
      result[i][sample] = samples[sample][i];
  return result;
}

LtcStatus ltcProgramsCompileGeneral(const LtcProgram *programs,
                                    const LtcSizeSamples *sizes,
                                    const LtcCompileOptions *options,
                                    LtcBytes *executable,
                                    LtcCompileStatistics *statistics) {
  ArrayRef<LtcProgram> samples(programs, LTC_GENERAL_SAMPLES);
  for (LtcProgram program : samples) {
    if (LtcStatus error = checkFinished(program))
      return error;
    if (program->home != samples[0]->home)
      return makeStatus(
          "the samples of a program belong to different compilers");
  }
  DiagnosticCollector diagnostics(samples[0]->context());
  std::string name = samples[0]->function.getName().str();
  std::vector<OwningOpRef<ModuleOp>> modules;
  std::vector<ProgramCompiler> compilers;
  for (LtcProgram program : samples) {
    modules.push_back(std::move(program->module));
    // The stages' texts are those of the first sample.
    bool isFirst = program == samples[0];
    compilers.emplace_back(
        program->compiler, *modules.back(),
        isFirst ? stageTextOf(options) : ProgramCompiler::StageText(),
        options && options->print_locations, options && options->verify,
        options ? options->threads : 1);
    if (failed(compilers.back().lowerToContract()) ||
        failed(compilers.back().lowerToLinalg()))
      return makeStatus(diagnostics.text("the program cannot be lowered"));
  }
  FailureOr<std::string> bytes = compilers[0].compileGeneral(
      modules, transpose(sizes->symbols, sizes->num_symbols),
      transpose(sizes->checked, sizes->num_checked), name);
  if (failed(bytes))
    return makeStatus(diagnostics.text("the program cannot be compiled"));
  *executable = ltcBytesCreate(bytes->data(), bytes->size());
  if (statistics) {
    *statistics = compilers[0].statistics;
    for (const ProgramCompiler &other : ArrayRef(compilers).drop_front()) {
      statistics->torch_seconds += other.statistics.torch_seconds;
      statistics->linalg_seconds += other.statistics.linalg_seconds;
    }
  }
  return nullptr;
}
