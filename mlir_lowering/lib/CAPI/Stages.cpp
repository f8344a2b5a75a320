//===- Stages.cpp - A program at one of its stages ------------------------===//

#include "ProgramCompiler.h"
#include "StagePipelines.h"
#include "torch_ltc/Conversion/TorchToLinalg/Passes.h"
#include "torch_ltc/Conversion/TorchToStablehlo/Passes.h"
#include "torch_ltc/Conversion/TorchToTosa/Passes.h"
#include "torch_ltc/Transforms/TorchPipeline.h"

#include "mlir/Bytecode/BytecodeWriter.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace mlir::torch_ltc;

/// The names of all stages except "ir", which is written from the traced graph.
static ArrayRef<StringRef> stageNames() {
  static const StringRef names[] = {
#define LTC_STAGE(name, file, text) name,
#include "torch_ltc-c/stages.def"
#undef LTC_STAGE
  };
  return ArrayRef(names).drop_front();
}

/// Whether the stage is internal to our compiler, and only available as text.
static bool isTextOnly(StringRef stage) {
  return llvm::is_contained({"kernels", "plan", "llvm", "asm"}, stage);
}

void torch_ltc::buildStagePipeline(StringRef stage,
                                   const LtcStageOptions &options,
                                   OpPassManager &passes) {
  if (stage == "tosa")
    return buildTorchToTosaPipeline(passes);
  if (stage == "stablehlo")
    return buildTorchToStablehloPipeline(passes);
  if (stage == "torch-raw")
    return;
  TorchPipelineOptions torchOptions;
  torchOptions.legalOps.assign(options.legal_ops,
                               options.legal_ops + options.legal_op_count);
  if (stage == "linalg" && !options.portable)
    llvm::append_range(torchOptions.legalOps, getRuntimeLegalOps());
  torchOptions.portable = stage == "torch" && options.portable;
  buildTorchPipeline(passes, torchOptions);
  if (stage == "linalg")
    buildTorchToLinalgPipeline(passes, options.portable);
}

LogicalResult torch_ltc::writeStage(ModuleOp module,
                                    const LtcStageOptions &options,
                                    std::string &result) {
  if (!options.bytecode) {
    result = printModule(module, options.print_locations);
    return success();
  }
  llvm::raw_string_ostream stream(result);
  return writeBytecodeToFile(module, stream);
}

/// Lowers the module to a stage that other compilers also read, and writes its
/// text or bytecode.
static LogicalResult writeModule(ModuleOp module,
                                 const LtcStageOptions &options,
                                 std::string &result) {
  StringRef stage = options.stage;
  PassManager passes(module.getContext(), module.getOperationName());
  // Verify modules in TOSA and StableHLO, because other compilers read them;
  // for our own dialects, tests suffice.
  passes.enableVerifier(stage == "tosa" || stage == "stablehlo");
  buildStagePipeline(stage, options, passes);
  if (failed(passes.run(module)))
    return failure();
  if (stage == "torch-raw" || stage == "torch")
    return writeStage(*exportTorchModule(module), options, result);
  return writeStage(module, options, result);
}

/// Compiles the program, up to stage kernels if that suffices, and writes the
/// text of the stage in `options` to `result`.
static LogicalResult writeText(LtcProgram program, ModuleOp module,
                               const LtcStageOptions &options,
                               std::string &result) {
  StringRef wanted = options.stage;
  auto keep = [&](StringRef stage, StringRef text) {
    if (stage == wanted)
      result = text.str();
  };
  ProgramCompiler compiler(program->compiler, module, keep,
                           options.print_locations, /*verify=*/false);
  StringRef name = program->function.getName();
  if (wanted == "kernels" || wanted == "plan")
    return compiler.lowerToKernels(name);
  return compiler.compile(name);
}

LtcStatus ltcProgramStage(LtcProgram program, const LtcStageOptions *options,
                          LtcBytes *result) {
  StringRef stage = options->stage;
  if (!llvm::is_contained(stageNames(), stage))
    return makeStatus(Twine("unknown stage '") + stage + "': the stages are " +
                      llvm::join(stageNames(), ", "));
  bool textOnly = isTextOnly(stage);
  if (textOnly && (options->bytecode || options->legal_op_count))
    return makeStatus(
        Twine("stage '") + stage +
        "' is only available as text of torch_ltc's own compiler");
  if (LtcStatus error = checkFinished(program))
    return error;
  DiagnosticCollector diagnostics(program->context());
  OwningOpRef<ModuleOp> module = program->module->clone();
  std::string written;
  LogicalResult reached = textOnly
                              ? writeText(program, *module, *options, written)
                              : writeModule(*module, *options, written);
  if (failed(reached))
    return makeStatus(diagnostics.text(
        Twine("the program does not reach the stage ") + stage));
  *result = ltcBytesCreate(written.data(), written.size());
  return nullptr;
}
