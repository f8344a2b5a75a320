//===- SymbolicStage.cpp - A program for all sizes at its stages ----------===//

#include "ProgramStorage.h"
#include "StagePipelines.h"

#include "torch_ltc/Dialect/Ltc/Attributes.h"
#include "torch_ltc/Dialect/Torch/TorchOps.h"
#include "torch_ltc/Dialect/Torch/TorchOps_recurrence.h"
#include "torch_ltc/Symbolic/Passes.h"
#include "torch_ltc/Symbolic/UnifyModules.h"
#include "torch_ltc/Transforms/Passes.h"

#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;
using namespace mlir::torch_ltc;

static SmallVector<SymbolicSize> symbolsOf(const LtcSymbolicProgram &program) {
  SmallVector<SymbolicSize> symbols;
  for (size_t i = 0; i < program.sizes->num_symbols; ++i) {
    const LtcSizeSymbol &symbol = program.symbols[i];
    symbols.push_back({symbol.name, 2, INT64_MAX, {}});
    for (size_t s = 0; s < kNumSamples; ++s)
      symbols.back().standIns[s] = program.sizes->symbols[s][i];
  }
  return symbols;
}

/// Sets the symbols' ranges. Must be called after `verifyAtOtherSizes`, whose
/// sizes may be outside the ranges.
static void setRanges(ModuleOp module, const LtcSymbolicProgram &program) {
  module.walk([&](torch::SymbolicIntOp op) {
    for (size_t i = 0; i < program.sizes->num_symbols; ++i)
      if (op.getSymbolName() == program.symbols[i].name) {
        op.setMinVal(program.symbols[i].least);
        op.setMaxVal(program.symbols[i].most);
      }
  });
}

static SmallVector<SizeSamples> checkedOf(const LtcSizeSamples &sizes) {
  SmallVector<SizeSamples> checked(sizes.num_checked);
  for (size_t s = 0; s < kNumSamples; ++s)
    for (size_t i = 0; i < checked.size(); ++i)
      checked[i][s] = sizes.checked[s][i];
  return checked;
}

/// Lowers a copy of a sample to the stage in `options`.
static FailureOr<OwningOpRef<ModuleOp>>
lowerSample(LtcProgram program, const LtcStageOptions &options) {
  OwningOpRef<ModuleOp> module = program->module->clone();
  (*module)->setAttr(kGeneralAttr, UnitAttr::get(program->context()));
  PassManager passes(program->context(), ModuleOp::getOperationName());
  buildStagePipeline(options.stage, options, passes);
  if (failed(passes.run(*module)))
    return failure();
  (*module)->removeAttr(kGeneralAttr);
  return module;
}

static std::vector<std::string> textOfValues(ArrayRef<SymbolicSize> symbols,
                                             const int64_t *values) {
  std::vector<std::string> result;
  for (auto [i, symbol] : llvm::enumerate(symbols))
    result.push_back(symbol.name + "=" + std::to_string(values[i]));
  return result;
}

static LogicalResult specialize(ModuleOp module, ArrayRef<std::string> values) {
  SpecializeSizesPassOptions options;
  options.sizes.assign(values.begin(), values.end());
  PassManager passes(module.getContext(), ModuleOp::getOperationName());
  passes.addPass(createSpecializeSizesPass(options));
  return passes.run(module);
}

/// Compares the module at `program.other_values` with `program.other`, which
/// was traced at these sizes.
static LogicalResult verifyAtOtherSizes(ModuleOp module,
                                        const LtcSymbolicProgram &program,
                                        ArrayRef<SymbolicSize> symbols,
                                        const LtcStageOptions &options) {
  FailureOr<OwningOpRef<ModuleOp>> other = lowerSample(program.other, options);
  if (failed(other))
    return failure();
  OwningOpRef<ModuleOp> copy = module.clone();
  if (failed(specialize(*copy, textOfValues(symbols, program.other_values))))
    return failure();
  PassManager passes(module.getContext(), ModuleOp::getOperationName());
  passes.addNestedPass<func::FuncOp>(createCanonicalizerPass());
  passes.addNestedPass<func::FuncOp>(createCSEPass());
  if (failed(passes.run(**other)))
    return failure();
  return verifySameTorchModule(*copy, **other);
}

/// Rejects recurrent layers over a varying number of steps, each of which the
/// stage contains as ops: lowering thousands of steps would take hours.
static LogicalResult checkSteps(const LtcSymbolicProgram &program) {
  auto layersOf = [](LtcProgram sample) {
    SmallVector<Operation *> layers;
    sample->module->walk([&](Operation *op) {
      if (isa<torch::TorchLtcLstmOp, torch::TorchLtcLstmBackwardOp,
              torch::TorchLtcGruOp, torch::TorchLtcGruBackwardOp,
              torch::TorchLtcRnnOp, torch::TorchLtcRnnBackwardOp>(op))
        layers.push_back(op);
    });
    return layers;
  };
  auto stepsOf = [](Operation *layer) {
    return cast<torch::ValueTensorType>(layer->getResult(0).getType())
        .getSizes()
        .front();
  };
  for (auto [layer, other] :
       llvm::zip(layersOf(program.programs[0]), layersOf(program.programs[1])))
    if (stepsOf(layer) != stepsOf(other))
      return layer->emitError()
             << "the number of steps of " << layer->getName()
             << " varies, but dialect torch has no recurrent layers, only the "
                "ops of each step: export a fixed number of steps";
  return success();
}

static LogicalResult writeSymbolicModule(const LtcSymbolicProgram &program,
                                         const LtcStageOptions &options,
                                         std::string &text, LtcBytes *checks,
                                         int *parameters) {
  if (StringRef(options.stage) == "torch" && failed(checkSteps(program)))
    return failure();
  std::vector<OwningOpRef<ModuleOp>> owned;
  SmallVector<ModuleOp> samples;
  for (size_t s = 0; s < kNumSamples; ++s) {
    FailureOr<OwningOpRef<ModuleOp>> sample =
        lowerSample(program.programs[s], options);
    if (failed(sample))
      return failure();
    owned.push_back(std::move(*sample));
    samples.push_back(*owned.back());
  }
  SmallVector<SymbolicSize> symbols = symbolsOf(program);
  SmallVector<SizeSamples> checked = checkedOf(*program.sizes);
  SmallVector<bool> areParameters;
  FailureOr<OwningOpRef<ModuleOp>> module =
      unifyTorchModules(samples, symbols, checked, areParameters);
  if (failed(module) || failed(verify(**module)) ||
      failed(verifyAtOtherSizes(**module, program, symbols, options)))
    return failure();
  FailureOr<std::string> form = sizeChecks(**module, symbols, checked);
  if (failed(form))
    return failure();
  *checks = ltcBytesCreate(form->data(), form->size());
  setRanges(**module, program);
  llvm::copy(areParameters, parameters);
  return writeStage(*exportTorchModule(**module), options, text);
}

LtcStatus ltcProgramsSymbolicStage(const LtcSymbolicProgram *program,
                                   const LtcStageOptions *options,
                                   LtcBytes *module, LtcBytes *checks,
                                   int *parameters) {
  StringRef stage = options->stage;
  if (stage != "torch" && stage != "torch-raw")
    return makeStatus(Twine("a program for all sizes is available at the "
                            "stages torch-raw and torch, but not at ") +
                      stage);
  for (size_t s = 0; s < kNumSamples; ++s)
    if (LtcStatus error = checkFinished(program->programs[s]))
      return error;
  if (LtcStatus error = checkFinished(program->other))
    return error;
  DiagnosticCollector diagnostics(program->other->context());
  std::string text;
  if (failed(writeSymbolicModule(*program, *options, text, checks, parameters)))
    return makeStatus(
        diagnostics.text("the program has no form for all sizes"));
  *module = ltcBytesCreate(text.data(), text.size());
  return nullptr;
}

LtcStatus ltcModuleSpecialize(LtcCompiler compiler, const char *module,
                              size_t size, const LtcSizeValue *values,
                              size_t count, LtcBytes *result) {
  std::shared_ptr<LtcCompilerContext> home = compiler->get();
  DiagnosticCollector diagnostics(&home->context);
  OwningOpRef<ModuleOp> parsed = parseSourceString<ModuleOp>(
      StringRef(module, size), &home->context, "module");
  std::vector<std::string> texts;
  for (size_t i = 0; i < count; ++i)
    texts.push_back(values[i].name + ("=" + std::to_string(values[i].value)));
  if (!parsed || failed(specialize(*parsed, texts)))
    return makeStatus(diagnostics.text("the module cannot be specialized"));
  std::string text = printModule(*parsed, /*printLocations=*/false);
  *result = ltcBytesCreate(text.data(), text.size());
  return nullptr;
}
