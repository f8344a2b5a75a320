//===- CompileGeneral.cpp - Programs for all sizes ------------------------===//

#include "ProgramCompiler.h"

#include "torch_ltc/Dialect/Ltc/Attributes.h"
#include "torch_ltc/Dialect/Torch/TorchDialect.h"
#include "torch_ltc/Support/SeparateConstants.h"
#include "torch_ltc/Support/UserLocation.h"

using namespace mlir;
using namespace mlir::torch_ltc;

/// Returns the samples of each of the `count` numbers, given the numbers of
/// each sample.
static SmallVector<SizeSamples> transpose(const int64_t *const *samples,
                                          size_t count) {
  SmallVector<SizeSamples> result(count);
  for (size_t sample = 0; sample < kNumSamples; ++sample)
    for (size_t i = 0; i < count; ++i)
      result[i][sample] = samples[sample][i];
  return result;
}

/// The ops of a sample's function, in order.
static SmallVector<Operation *> opsOf(ModuleOp module) {
  SmallVector<Operation *> ops;
  for (auto function : module.getOps<func::FuncOp>())
    if (!function.isPrivate())
      for (Operation &op : function.getBody().front())
        ops.push_back(&op);
  return ops;
}

/// Returns the first op of `ops` whose counterpart in `others` is missing or
/// has a different name. If there is none, but `others` has more ops, returns
/// the last op of `ops`. Returns null if there is no difference.
static Operation *firstDifference(ArrayRef<Operation *> ops,
                                  ArrayRef<Operation *> others) {
  for (auto [op, other] : llvm::zip(ops, others))
    if (op->getName() != other->getName())
      return op;
  if (ops.size() == others.size())
    return nullptr;
  return ops[std::min(others.size(), ops.size() - 1)];
}

/// Replaces floats that differ between the samples (for example, the reciprocal
/// of a count) by scalar parameters, whose values a binding computes. Constants
/// would be rounded to the dtype of the tensors, so that 1/n and 1/(n-1) might
/// be equal at large stand-ins.
static LogicalResult
liftFloats(const std::vector<OwningOpRef<ModuleOp>> &samples,
           SmallVectorImpl<FloatSamples> &lifted) {
  std::array<SmallVector<Operation *>, kNumSamples> ops;
  for (unsigned s = 0; s < kNumSamples; ++s) {
    for (auto function : ModuleOp(*samples[s]).getOps<func::FuncOp>())
      separateConstants(function.getBody());
    ops[s] = opsOf(*samples[s]);
    if (Operation *other = firstDifference(ops[0], ops[s]))
      return other->emitError("the program has no form for all sizes: its ops "
                              "depend on the sizes, from ")
             << other->getName() << userLocationSuffix(other->getLoc())
             << " on";
  }
  for (size_t i = 0; i < ops[0].size(); ++i) {
    FloatSamples number;
    bool isFloat = true;
    for (unsigned s = 0; s < kNumSamples; ++s) {
      auto constant = dyn_cast<torch::ConstantFloatOp>(ops[s][i]);
      isFloat &= bool(constant);
      if (constant)
        number[s] = constant.getValue().convertToDouble();
    }
    if (!isFloat || llvm::all_equal(number))
      continue;
    auto known = llvm::find(lifted, number);
    const unsigned fromEnd = unsigned(lifted.end() - known);
    const bool isNew = fromEnd == 0;
    if (isNew)
      lifted.push_back(number);
    for (unsigned s = 0; s < kNumSamples; ++s) {
      Operation *op = ops[s][i];
      auto function = op->getParentOfType<func::FuncOp>();
      unsigned end = function.getNumArguments();
      if (isNew && failed(function.insertArgument(
                       end, op->getResult(0).getType(), {}, op->getLoc())))
        return failure();
      op->getResult(0).replaceAllUsesWith(function.getArgument(end - fromEnd));
      op->erase();
    }
  }
  return success();
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
      return makeStatus("the samples of a program must be created with "
                        "ltcProgramCreateInContextOf");
  }
  DiagnosticCollector diagnostics(samples[0]->context());
  std::string name = samples[0]->function.getName().str();
  std::vector<OwningOpRef<ModuleOp>> modules;
  std::vector<ProgramCompiler> compilers;
  for (LtcProgram program : samples) {
    modules.push_back(std::move(program->module));
    ModuleOp(*modules.back())
        ->setAttr(kGeneralAttr, UnitAttr::get(program->context()));
    // The stages' texts are those of the first sample.
    bool isFirst = program == samples[0];
    compilers.emplace_back(
        program->compiler, *modules.back(),
        isFirst ? stageTextOf(options) : ProgramCompiler::StageText(),
        options && options->print_locations, options && options->verify,
        options ? options->threads : 1);
    if (failed(compilers.back().lowerToContract()))
      return makeStatus(diagnostics.text("the program cannot be lowered"));
  }
  SmallVector<FloatSamples> floats;
  if (failed(liftFloats(modules, floats)))
    return makeStatus(diagnostics.text("the program cannot be lowered"));
  for (ProgramCompiler &compiler : compilers)
    if (failed(compiler.lowerToLinalg()))
      return makeStatus(diagnostics.text("the program cannot be lowered"));
  GeneralNumbers numbers{transpose(sizes->symbols, sizes->num_symbols),
                         transpose(sizes->checked, sizes->num_checked),
                         std::move(floats)};
  FailureOr<std::string> bytes =
      compilers[0].compileGeneral(modules, numbers, name);
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
