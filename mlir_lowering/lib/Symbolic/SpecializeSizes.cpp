//===- SpecializeSizes.cpp - A program for all sizes at given sizes -------===//

#include "torch_ltc/Dialect/Torch/TorchDialect.h"
#include "torch_ltc/Dialect/Torch/TorchOps.h"
#include "torch_ltc/Symbolic/Passes.h"
#include "torch_ltc/Symbolic/UnifyModules.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Transforms/Passes.h"

namespace mlir::torch_ltc {
#define GEN_PASS_DEF_SPECIALIZESIZESPASS
#include "torch_ltc/Symbolic/Passes.h.inc"
} // namespace mlir::torch_ltc

using namespace mlir;
using namespace mlir::torch_ltc;
using namespace mlir::torch_ltc::torch;

using SymbolValues = ArrayRef<std::pair<StringRef, int64_t>>;

static std::optional<int64_t> valueOf(StringRef symbol, SymbolValues values) {
  for (auto [name, value] : values)
    if (name == symbol)
      return value;
  return std::nullopt;
}

/// Returns the value of a symbol. Emits an error if there is none, or if it is
/// outside the symbol's range.
static FailureOr<int64_t> valueOf(SymbolicIntOp symbol, SymbolValues values) {
  std::optional<int64_t> value = valueOf(symbol.getSymbolName(), values);
  if (!value)
    return symbol.emitError("symbol ")
           << symbol.getSymbolName() << " has no value";
  if (*value < int64_t(symbol.getMinVal()) ||
      *value > int64_t(symbol.getMaxVal()))
    return symbol.emitError("symbol ")
           << symbol.getSymbolName() << " is " << *value
           << ", which isn't from " << symbol.getMinVal() << " to "
           << symbol.getMaxVal();
  return *value;
}

/// Computes the operand's sizes from the symbols' values, and sets them in the
/// operand's type.
static LogicalResult setSizes(BindSymbolicShapeOp bind, SymbolValues values) {
  MLIRContext *context = bind.getContext();
  SmallVector<AffineExpr> numbers;
  for (Value symbol : bind.getShapeSymbols()) {
    FailureOr<int64_t> value =
        valueOf(symbol.getDefiningOp<SymbolicIntOp>(), values);
    if (failed(value))
      return failure();
    numbers.push_back(getAffineConstantExpr(*value, context));
  }
  auto type = cast<ValueTensorType>(bind.getOperand().getType());
  SmallVector<int64_t> sizes;
  for (AffineExpr expression : bind.getShapeExpressions().getResults()) {
    auto size = dyn_cast<AffineConstantExpr>(
        simplifyAffineExpr(expression.replaceSymbols(numbers), 0, 0));
    if (!size || size.getValue() < 0)
      return bind.emitError("a size is negative, or a divisor is 0");
    sizes.push_back(size.getValue());
  }
  bind.getOperand().setType(
      ValueTensorType::get(context, sizes, type.getDtype()));
  return success();
}

/// Replaces parameters that are symbols by their values.
static LogicalResult replaceSymbolParameters(func::FuncOp function,
                                             SymbolValues values) {
  for (unsigned i = function.getNumArguments(); i-- > 0;) {
    auto name = function.getArgAttrOfType<StringAttr>(i, kSymbolAttr);
    if (!name)
      continue;
    std::optional<int64_t> value = valueOf(name.getValue(), values);
    if (!value)
      return function.emitError("symbol ")
             << name.getValue() << " has no value";
    OpBuilder builder = OpBuilder::atBlockBegin(&function.getBody().front());
    function.getArgument(i).replaceAllUsesWith(ConstantIntOp::create(
        builder, function.getLoc(), IntType::get(builder.getContext()),
        builder.getI64IntegerAttr(*value)));
    if (failed(function.eraseArgument(i)))
      return failure();
  }
  return success();
}

static LogicalResult specializeSizes(ModuleOp module, SymbolValues values) {
  for (auto function : module.getOps<func::FuncOp>()) {
    if (function.isDeclaration())
      continue;
    if (failed(replaceSymbolParameters(function, values)))
      return failure();
    SmallVector<Operation *> ops;
    for (Operation &op : function.getBody().front())
      if (isa<BindSymbolicShapeOp, SymbolicIntOp>(op))
        ops.push_back(&op);
    for (Operation *op : llvm::reverse(ops)) {
      if (auto bind = dyn_cast<BindSymbolicShapeOp>(op))
        if (failed(setSizes(bind, values)))
          return failure();
      op->erase();
    }
    Operation *end = function.getBody().front().getTerminator();
    function.setType(FunctionType::get(function.getContext(),
                                       function.getBody().getArgumentTypes(),
                                       end->getOperandTypes()));
  }
  return success();
}

namespace {
struct SpecializeSizesPass
    : mlir::torch_ltc::impl::SpecializeSizesPassBase<SpecializeSizesPass> {
  using SpecializeSizesPassBase::SpecializeSizesPassBase;

  void runOnOperation() override {
    SmallVector<std::pair<StringRef, int64_t>> values;
    for (const std::string &entry : sizes) {
      auto [name, number] = StringRef(entry).split('=');
      int64_t value;
      if (number.getAsInteger(10, value)) {
        getOperation().emitError("'")
            << entry << "' isn't a symbol and its value, such as s0=4";
        return signalPassFailure();
      }
      values.push_back({name, value});
    }
    OpPassManager passes(getOperation().getOperationName());
    passes.addNestedPass<func::FuncOp>(createCanonicalizerPass());
    passes.addNestedPass<func::FuncOp>(createCSEPass());
    if (failed(specializeSizes(getOperation(), values)) ||
        failed(runPipeline(passes, getOperation())))
      signalPassFailure();
  }
};
} // namespace
