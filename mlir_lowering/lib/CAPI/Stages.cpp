//===- Stages.cpp - A program for other compilers -------------------------===//

#include "ProgramStorage.h"
#include "torch_ltc/Conversion/TorchToLinalg/Passes.h"
#include "torch_ltc/Conversion/TorchToStablehlo/Passes.h"
#include "torch_ltc/Conversion/TorchToTosa/Passes.h"
#include "torch_ltc/Transforms/Passes.h"
#include "torch_ltc/Transforms/TorchPipeline.h"

#include "mlir/Bytecode/BytecodeWriter.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;
using namespace mlir::torch_ltc;

namespace {
enum class Stage { TorchRaw, Torch, Linalg, Tosa, Stablehlo };
} // namespace

static std::optional<Stage> findStage(StringRef name) {
  if (name == "torch-raw")
    return Stage::TorchRaw;
  if (name == "torch")
    return Stage::Torch;
  if (name == "linalg")
    return Stage::Linalg;
  if (name == "tosa")
    return Stage::Tosa;
  if (name == "stablehlo")
    return Stage::Stablehlo;
  return std::nullopt;
}

static LogicalResult lowerTo(Stage stage, const LtcStageOptions &options,
                             ModuleOp module) {
  PassManager passes(module.getContext(), module.getOperationName());
  // Ours is verified by tests; the ops of dialects that others read as well.
  passes.enableVerifier(stage == Stage::Tosa || stage == Stage::Stablehlo);
  if (stage == Stage::Tosa) {
    buildTorchToTosaPipeline(passes);
  } else if (stage == Stage::Stablehlo) {
    buildTorchToStablehloPipeline(passes);
  } else if (stage != Stage::TorchRaw) {
    TorchPipelineOptions torchOptions;
    torchOptions.legalOps.assign(options.legal_ops,
                                 options.legal_ops + options.legal_op_count);
    if (stage == Stage::Linalg && !options.portable)
      llvm::append_range(torchOptions.legalOps, opsOfRuntime());
    torchOptions.portable = stage == Stage::Torch && options.portable;
    buildTorchPipeline(passes, torchOptions);
  }
  if (stage == Stage::Linalg) {
    passes.addPass(createConvertTorchToLinalgPass());
    if (options.portable)
      passes.addNestedPass<func::FuncOp>(createExpandLibraryCallsPass());
    passes.addPass(createCanonicalizerPass());
    passes.addPass(createCSEPass());
  }
  return passes.run(module);
}

static LogicalResult write(ModuleOp module, const LtcStageOptions &options,
                           std::string &result) {
  llvm::raw_string_ostream stream(result);
  if (options.bytecode)
    return writeBytecodeToFile(module, stream);
  OpPrintingFlags flags;
  if (options.print_locations)
    flags.enableDebugInfo();
  module.print(stream, flags);
  return success();
}

LtcStatus ltcProgramStage(LtcProgram program, const LtcStageOptions *options,
                          LtcBytes *result) {
  std::optional<Stage> stage = findStage(options->stage);
  if (!stage) {
    if (options->bytecode || options->legal_op_count)
      return makeStatus(Twine("stage '") + options->stage +
                        "' is available as text of our own compiler only");
    return ltcProgramStageText(program, options->stage,
                               options->print_locations, result);
  }
  if (LtcStatus error = checkFinished(program))
    return error;
  DiagnosticCollector diagnostics(program->context());
  OwningOpRef<ModuleOp> module = program->module->clone();
  std::string written;
  if (failed(lowerTo(*stage, *options, *module)))
    return makeStatus(diagnostics.text(
        Twine("the program does not reach the stage ") + options->stage));
  if (*stage == Stage::TorchRaw || *stage == Stage::Torch)
    module = exportTorchModule(*module);
  if (failed(write(*module, *options, written)))
    return makeStatus(diagnostics.text("the module cannot be written"));
  *result = ltcBytesCreate(written.data(), written.size());
  return nullptr;
}
