//===- DecomposeChecks.cpp - Checks of values that eager rejects ----------===//

#include "FormulaBuilder.h"

#include "torch_ltc/Dialect/Torch/TorchOps_elementwise.h"
#include "torch_ltc/Dialect/Torch/TorchOps_indexing.h"

#include <cmath>
#include <limits>

using namespace mlir;
using namespace mlir::torch_ltc;
using namespace mlir::torch_ltc::torch;

// Adds to the token a 0 whose computation fails unless the condition holds.
// After a failure, eager reruns the op and raises an error with the op's
// message.
static LogicalResult decomposeAssert(Aten_FunctionalAssertAsyncMsgOp op,
                                     FormulaBuilder &b) {
  if (b.numElements(op.getSelf()) != 1)
    return b.fail("its condition isn't one bool");
  Value token = op.getDepToken();
  Value condition = b.ne(op.getSelf(), 0.0);
  Value zero = b.cast(b.zeroIfAll(condition), b.dtype(token));
  return b.replaceWith({b.add(b.view(token, {b.numElements(token)}), zero)});
}

static double largestOf(mlir::FloatType type) {
  return APFloat::getLargest(type.getFloatSemantics()).convertToDouble();
}

/// Whether `value` is in the range of `dtype` by the rules of
/// c10::checked_convert: negative integers wrap in unsigned dtypes, and
/// infinity and NaN are in the range of every float dtype. Returns null if
/// every value of `value`'s dtype is in range. Compares doubles or int64,
/// because other dtypes don't represent the limits exactly.
static Value isInRange(FormulaBuilder &b, Value value, Type dtype) {
  Type given = b.dtype(value);
  if (isa<mlir::ComplexType>(given) || isa<mlir::ComplexType>(dtype) ||
      given.isInteger(1) || dtype.isInteger(1) || given == dtype)
    return {};
  auto from = dyn_cast<mlir::IntegerType>(given);
  if (auto to = dyn_cast<mlir::FloatType>(dtype)) {
    double largest = largestOf(to);
    if ((from ? 0x1p64 : largestOf(cast<mlir::FloatType>(given))) <= largest)
      return {};
    Value magnitude =
        b.abs(b.cast(value, Float64Type::get(dtype.getContext())));
    return b.logicalNot(
        b.logicalAnd(b.gt(magnitude, largest),
                     b.lt(magnitude, std::numeric_limits<double>::infinity())));
  }
  auto to = cast<mlir::IntegerType>(dtype);
  const unsigned width = to.getWidth();
  const double bound = std::ldexp(1.0, width - !to.isUnsigned());
  if (!from) {
    Value wide = b.cast(value, Float64Type::get(dtype.getContext()));
    return b.logicalAnd(b.ge(wide, to.isUnsigned() ? 0 : -bound),
                        b.lt(wide, bound));
  }
  if (from.getWidth() <= width && from.isUnsigned() == to.isUnsigned())
    return {};
  if (width == 64 && (to.isUnsigned() || from.getWidth() < 64))
    return {};
  Value wide = b.cast(value, mlir::IntegerType::get(dtype.getContext(), 64,
                                                    mlir::IntegerType::Signed));
  if (width == 64) // a uint64 above the range of int64 is negative as an int64
    return b.ge(wide, 0);
  int64_t highest = int64_t(bound) - 1;
  int64_t lowest = from.isUnsigned() ? 0
                   : to.isUnsigned() ? -highest
                                     : -highest - 1;
  return b.logicalAnd(b.ge(wide, lowest), b.le(wide, highest));
}

// Eager converts the value to the dtype of `self` with a check.
template <typename FillOp>
static LogicalResult checkFillValue(FillOp op, FormulaBuilder &b) {
  Value value = op.getValue();
  Type dtype = b.dtype(op.getSelf());
  Value isValid = isInRange(b, value, dtype);
  if (!isValid)
    return failure();
  Value zero = b.view(b.zeroIfAll(isValid), {});
  return b.replaceOperand(value,
                          b.add(b.cast(value, dtype), b.cast(zero, dtype)));
}

void mlir::torch_ltc::populateCheckDecompositionPatterns(
    RewritePatternSet &patterns, const DecompositionOptions &options) {
  DecompositionAdder adder(patterns, options);
  adder.add(decomposeAssert);
  adder.add(checkFillValue<AtenMaskedFillTensorOp>);
  adder.add(checkFillValue<AtenIndexFillIntTensorOp>);
}
