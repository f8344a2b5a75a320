//===- Reduction.cpp - Reductions to linalg.generic -----------------------===//
//
// The ops' arguments are (self, dim, keepdim, ...), or (self) for a reduction
// of all dimensions.
//
//===----------------------------------------------------------------------===//

#include "OpLowering.h"

using namespace mlir;
using namespace mlir::torch_ltc;

static SmallVector<int64_t> reducedDims(OpLowering &op, bool hasDim) {
  if (!hasDim || op.isNone(1))
    return llvm::to_vector(llvm::seq<int64_t>(0, op.rank(0)));
  return op.dimensions(1, op.rank(0));
}

//===----------------------------------------------------------------------===//
// Reductions with one accumulator
//===----------------------------------------------------------------------===//

namespace {
/// A reduction: its neutral element and its combining step, both in the
/// accumulator's dtype.
struct Fold {
  Value (*neutral)(ScalarBuilder &);
  Value (*combine)(ScalarBuilder &, Value accumulator, Value element);
};
} // namespace

/// Converts the elements to the accumulator's dtype (that of torch's CPU
/// kernels: float32 for the 16-bit floats), and rounds the result once.
static LogicalResult lowerFold(OpLowering &op, bool hasDim, const Fold &fold) {
  Type from = op.dtype(0), to = op.resultDtype();
  Type accumulator = computeDtypeOf(to);
  ScalarBuilder outer(op.builder, op.loc, accumulator);
  Value result = op.tensors.reduce(
      op.tensor(0), reducedDims(op, hasDim), fold.neutral(outer),
      [&](OpBuilder &nested, Location loc, ValueRange inputs,
          ValueRange accumulators) {
        ScalarBuilder s(nested, loc, accumulator);
        Value element = s.convert(inputs[0], from, accumulator);
        return SmallVector<Value>{fold.combine(s, accumulators[0], element)};
      })[0];
  return op.replaceWith(op.tensors.convert(result, accumulator, to));
}

static const Fold sumFold = {
    [](ScalarBuilder &s) { return s.integer(0); },
    [](ScalarBuilder &s, Value a, Value x) { return s.add(a, x); }};
static const Fold productFold = {
    [](ScalarBuilder &s) { return s.integer(1); },
    [](ScalarBuilder &s, Value a, Value x) { return s.mul(a, x); }};
static const Fold maximumFold = {
    [](ScalarBuilder &s) { return s.lowest(); },
    [](ScalarBuilder &s, Value a, Value x) { return s.maximum(a, x); }};
static const Fold minimumFold = {
    [](ScalarBuilder &s) { return s.highest(); },
    [](ScalarBuilder &s, Value a, Value x) { return s.minimum(a, x); }};

template <const Fold &fold, bool hasDim>
static LogicalResult lowerFold(OpLowering &op) {
  return lowerFold(op, hasDim, fold);
}

/// any and all: reduce the truth values of the elements.
template <bool isAll, bool hasDim>
static LogicalResult lowerTruthFold(OpLowering &op) {
  Type from = op.dtype(0);
  Type boolType = op.builder.getI1Type();
  ScalarBuilder outer(op.builder, op.loc, boolType);
  // Unlike sum, any and all reduce no dimension if `dim` is the empty list.
  if (hasDim && op.isEmptyList(1)) {
    Value truth = op.tensors.convert(op.tensor(0), from, boolType);
    return op.replaceWith(
        op.tensors.convert(truth, boolType, op.resultDtype()));
  }
  Value result = op.tensors.reduce(
      op.tensor(0), reducedDims(op, hasDim), outer.boolean(isAll),
      [&](OpBuilder &nested, Location loc, ValueRange inputs,
          ValueRange accumulators) {
        ScalarBuilder s(nested, loc, from);
        Value truth = s.truth(inputs[0]);
        return SmallVector<Value>{isAll ? s.logicalAnd(accumulators[0], truth)
                                        : s.logicalOr(accumulators[0], truth)};
      })[0];
  // For uint8, the results of torch's any and all are uint8.
  return op.replaceWith(op.tensors.convert(result, boolType, op.resultDtype()));
}

/// Divides the sum, in the accumulator's dtype, by the number of elements, and
/// rounds once.
template <bool hasDim> static LogicalResult lowerMean(OpLowering &op) {
  Type from = op.dtype(0), to = op.resultDtype();
  Type accumulator = computeDtypeOf(to);
  SmallVector<int64_t> dims = reducedDims(op, hasDim);
  int64_t count = 1;
  for (int64_t dim : dims)
    count *= op.sizes(0)[dim];
  ScalarBuilder outer(op.builder, op.loc, accumulator);
  Value sum = op.tensors.reduce(
      op.tensor(0), dims, outer.integer(0),
      [&](OpBuilder &nested, Location loc, ValueRange inputs,
          ValueRange accumulators) {
        ScalarBuilder s(nested, loc, accumulator);
        return SmallVector<Value>{
            s.add(accumulators[0], s.convert(inputs[0], from, accumulator))};
      })[0];
  auto type = cast<RankedTensorType>(sum.getType());
  Value mean = op.tensors.elementwise(
      type.getShape(), storageTypeOf(to), sum,
      [&](OpBuilder &nested, Location loc, ValueRange inputs) {
        ScalarBuilder s(nested, loc, accumulator);
        Value quotient = s.div(inputs[0], s.integer(count));
        return SmallVector<Value>{s.convert(quotient, accumulator, to)};
      })[0];
  return op.replaceWith(mean);
}

//===----------------------------------------------------------------------===//
// Extremes with their positions
//===----------------------------------------------------------------------===//

/// Whether `element` replaces `best`. A NaN replaces numbers. Of equal elements
/// (and of NaNs), the one at the lower position is chosen explicitly, because
/// loops over a flattened transposed tensor run in memory order, not in the
/// order of positions.
static Value isBetter(ScalarBuilder &s, bool isMax, Value element, Value best,
                      Value isBefore) {
  Value better =
      s.compare(isMax ? Comparison::gt : Comparison::lt, element, best);
  Value equal = s.compare(Comparison::eq, element, best);
  if (s.isFloat()) {
    // A comparison with NaN is false, so an existing NaN stays.
    Value isNan = s.isNan(element), wasNan = s.isNan(best);
    better = s.logicalOr(better, s.logicalAnd(isNan, s.logicalNot(wasNan)));
    equal = s.logicalOr(equal, s.logicalAnd(isNan, wasNan));
  }
  return s.logicalOr(better, s.logicalAnd(equal, isBefore));
}

/// Value and index along `dim` of the greatest or smallest element.
static SmallVector<Value> reduceWithIndex(OpLowering &op, Value input,
                                          int64_t dim, bool isMax) {
  Type dtype = op.dtype(0);
  ScalarBuilder outer(op.builder, op.loc, dtype);
  Type indexDtype =
      IntegerType::get(op.builder.getContext(), 64, IntegerType::Signed);
  ScalarBuilder indices(op.builder, op.loc, indexDtype);
  // The index 0 is correct even if no element is better than the start value.
  Value start = isMax ? outer.lowest() : outer.highest();
  return op.tensors.reduce(
      input, dim, {start, indices.integer(0)},
      [&](OpBuilder &nested, Location loc, ValueRange inputs,
          ValueRange accumulators) {
        ScalarBuilder s(nested, loc, dtype);
        Value position = linalg::IndexOp::create(nested, loc, dim);
        position = arith::IndexCastOp::create(nested, loc, nested.getI64Type(),
                                              position);
        Value isBefore = arith::CmpIOp::create(
            nested, loc, arith::CmpIPredicate::slt, position, accumulators[1]);
        Value better = isBetter(s, isMax, inputs[0], accumulators[0], isBefore);
        return SmallVector<Value>{s.select(better, inputs[0], accumulators[0]),
                                  s.select(better, position, accumulators[1])};
      });
}

/// max.dim and min.dim: (self, dim, keepdim) -> (values, indices)
template <bool isMax> static LogicalResult lowerExtreme(OpLowering &op) {
  Value input = op.tensor(0);
  int64_t dim = op.dimension(1, op.rank(0));
  if (op.rank(0) == 0)
    input = op.tensors.flatten(input);
  return op.replaceWith(reduceWithIndex(op, input, dim, isMax));
}

/// argmax and argmin: (self, dim, keepdim); without dim, the result is a
/// position in the flattened tensor.
template <bool isMax> static LogicalResult lowerArgument(OpLowering &op) {
  Value input = op.tensor(0);
  int64_t dim = 0;
  if (op.isNone(1) || op.rank(0) == 0)
    input = op.tensors.flatten(input);
  else
    dim = op.dimension(1, op.rank(0));
  return op.replaceWith(reduceWithIndex(op, input, dim, isMax)[1]);
}

void torch_ltc::populateReductionLowerings(LoweringTable &table) {
  table.add("aten.sum", lowerFold<sumFold, false>);
  table.add("aten.sum.dim_IntList", lowerFold<sumFold, true>);
  table.add("aten.prod", lowerFold<productFold, false>);
  table.add("aten.prod.dim_int", lowerFold<productFold, true>);
  table.add("aten.mean", lowerMean<false>);
  table.add("aten.mean.dim", lowerMean<true>);
  table.add("aten.amax", lowerFold<maximumFold, true>);
  table.add("aten.amin", lowerFold<minimumFold, true>);
  table.add("aten.max", lowerFold<maximumFold, false>);
  table.add("aten.min", lowerFold<minimumFold, false>);
  table.add("aten.max.dim", lowerExtreme<true>);
  table.add("aten.min.dim", lowerExtreme<false>);
  table.add("aten.argmax", lowerArgument<true>);
  table.add("aten.argmin", lowerArgument<false>);
  table.add("aten.any", lowerTruthFold<false, false>);
  table.add("aten.any.dim", lowerTruthFold<false, true>);
  table.add("aten.any.dims", lowerTruthFold<false, true>);
  table.add("aten.all", lowerTruthFold<true, false>);
  table.add("aten.all.dim", lowerTruthFold<true, true>);
  table.add("aten.all.dims", lowerTruthFold<true, true>);
}
