//===- TensorConversion.cpp - Conversion of the torch dialect to a target -===//

#include "TensorConversion.h"

#include "../TorchToLinalg/TorchConversion.h"

#include "torch_ltc/Dialect/Torch/AtenOp.h"
#include "torch_ltc/Dialect/Torch/TorchDialect.h"
#include "torch_ltc/Dialect/Torch/TorchOps.h"
#include "torch_ltc/Support/UserLocation.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace mlir::torch_ltc;

const TensorLoweringTable &torch_ltc::tensorLoweringTable() {
  static const TensorLoweringTable table = [] {
    TensorLoweringTable table;
    populateElementwiseTensorLowerings(table);
    populateReductionTensorLowerings(table);
    populateScanTensorLowerings(table);
    populateDataMovementTensorLowerings(table);
    populateLinearTensorLowerings(table);
    populateConvolutionTensorLowerings(table);
    populatePoolingTensorLowerings(table);
    populateIndexingTensorLowerings(table);
    populateScatterTensorLowerings(table);
    populateSortTensorLowerings(table);
    populateStridedTensorLowerings(table);
    populateConstructorTensorLowerings(table);
    return table;
  }();
  return table;
}

//===----------------------------------------------------------------------===//
// Types
//===----------------------------------------------------------------------===//

static Value castValue(OpBuilder &builder, Type type, ValueRange inputs,
                       Location loc) {
  return UnrealizedConversionCastOp::create(builder, loc, type, inputs)
      .getResult(0);
}

static void addTypes(TypeConverter &converter, const TensorTarget &target) {
  converter.addConversion([](Type type) { return type; });
  converter.addConversion([&](torch::ValueTensorType type) -> Type {
    if (!type.isStatic())
      return {};
    Type element = target.elementTypeOf(type.getDtype());
    // The target may have this dtype only for numbers (TOSA's float64).
    if (!element && type.getSizes().empty())
      element = target.numberTypeOf(type.getDtype());
    return element ? RankedTensorType::get(type.getSizes(), element) : Type();
  });
  auto number = [&](Type dtype) {
    return RankedTensorType::get({}, target.numberTypeOf(dtype));
  };
  converter.addConversion([=](torch::IntType type) -> Type {
    return number(IntegerType::get(type.getContext(), 64, IntegerType::Signed));
  });
  converter.addConversion([=](torch::FloatType type) -> Type {
    return number(Float64Type::get(type.getContext()));
  });
  converter.addConversion([=](torch::BoolType type) -> Type {
    return number(IntegerType::get(type.getContext(), 1));
  });
  converter.addTargetMaterialization(castValue);
  converter.addSourceMaterialization(castValue);
}

/// Emits an error for each tensor that the target doesn't support: one without
/// elements, or with a dtype that the target lacks or has only for numbers.
static LogicalResult checkTensors(ModuleOp module, const TensorTarget &target) {
  LogicalResult result = success();
  auto check = [&](Location loc, Type type, const Twine &what) {
    auto tensor = dyn_cast<torch::ValueTensorType>(type);
    if (!tensor || !tensor.isStatic())
      return;
    bool isEmpty = tensor.getNumElements() == 0 && !target.hasEmptyTensors();
    if (!isEmpty && target.elementTypeOf(tensor.getDtype()))
      return;
    InFlightDiagnostic error = emitError(loc) << what;
    if (isEmpty)
      error << " has no elements, and " << target.getName()
            << " has no such tensors; leave it out";
    else
      error << " has the dtype " << tensor.getDtype()
            << ", which the conversion to " << target.getName()
            << " doesn't support; convert it to another dtype";
    error << userLocationSuffix(loc);
    result = failure();
  };
  module.walk([&](Operation *op) {
    if (auto function = dyn_cast<func::FuncOp>(op))
      for (auto [number, type] : llvm::enumerate(function.getArgumentTypes()))
        check(op->getLoc(), type, "input " + Twine(number));
    if (isa<torch::PrimNumToTensorScalarOp>(op))
      return;
    StringRef name = op->getName().getStringRef();
    name.consume_front("torch.");
    // Skip unused results, which lowerings don't create.
    for (Value value : op->getResults())
      if (!value.use_empty())
        check(op->getLoc(), value.getType(), name + "'s result");
  });
  return result;
}

//===----------------------------------------------------------------------===//
// The pattern
//===----------------------------------------------------------------------===//

/// An operand that must be a constant number but isn't; null if there is none.
static OpOperand *findUnknown(Operation *op,
                              const TensorLoweringTable::Entry &entry) {
  for (OpOperand &operand : op->getOpOperands()) {
    Type type = operand.get().getType();
    bool isNumber = torch::isScalarType(type) || isa<torch::BoolType>(type);
    if (isNumber && !matchPattern(operand.get(), m_Constant()) &&
        !llvm::is_contained(entry.dynamicScalars, operand.getOperandNumber()))
      return &operand;
  }
  return nullptr;
}

namespace {
struct TensorOpPattern : ConversionPattern {
  TensorOpPattern(const TypeConverter &converter, MLIRContext *context,
                  TensorTargetFactory makeTarget)
      : ConversionPattern(converter, MatchAnyOpTypeTag(), /*benefit=*/1,
                          context),
        makeTarget(makeTarget) {}

  LogicalResult
  matchAndRewrite(Operation *op, ArrayRef<Value> operands,
                  ConversionPatternRewriter &rewriter) const override {
    if (!isa<torch::TorchDialect>(op->getDialect()) || isLookedThrough(op))
      return failure();
    StringRef name = op->getName().getStringRef();
    if (auto foreign = dyn_cast<torch::OperatorOp>(op))
      name = foreign.getName();
    name.consume_front("torch.");
    std::unique_ptr<TensorTarget> target = makeTarget(rewriter, op->getLoc());
    TensorLowering lowering(op, name, operands, rewriter, *target);
    if (torch::hasComplexTensor(op))
      return lowering.fail("complex numbers aren't supported");
    const TensorLoweringTable::Entry *entry = tensorLoweringTable().find(name);
    if (!entry)
      return lowering.fail(
          "there is none for this op (backend contract, rule BC4)");
    if (OpOperand *operand = findUnknown(op, *entry))
      return lowering.fail(torch::describeArgument(*operand) +
                           " isn't a constant of the program (backend "
                           "contract, rule BC6)");
    return entry->lower(lowering);
  }

  TensorTargetFactory makeTarget;
};
} // namespace

LogicalResult
torch_ltc::convertToTensors(ModuleOp module, TensorTargetFactory makeTarget,
                            function_ref<bool(Operation *)> isLegalOp) {
  MLIRContext *context = module.getContext();
  OpBuilder builder(context);
  std::unique_ptr<TensorTarget> description =
      makeTarget(builder, module.getLoc());
  if (failed(checkTensors(module, *description)))
    return failure();
  TypeConverter converter;
  addTypes(converter, *description);
  RewritePatternSet patterns(context);
  patterns.add<TensorOpPattern>(converter, context, makeTarget);
  return convertTorchModule(module, converter, std::move(patterns), isLegalOp);
}
