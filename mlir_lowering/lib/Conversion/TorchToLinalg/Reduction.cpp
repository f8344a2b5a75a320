//===- Reduction.cpp - Reductions to linalg.generic -----------------------===//

#include "OpArguments.h"

#include "torch_ltc/Dialect/Torch/TorchOps_reduction.h"

using namespace mlir;
using namespace mlir::torch_ltc;
using namespace mlir::torch_ltc::torch::ops;

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
static LogicalResult lowerFold(OpLowering &op, Value self,
                               ArrayRef<int64_t> dims, const Fold &fold) {
  Type from = op.dtype(self), to = op.resultDtype();
  Type accumulator = computeDtypeOf(to);
  ScalarBuilder outer(op.builder, op.loc, accumulator);
  Value result = op.tensors.reduce(
      op.tensor(self), dims, fold.neutral(outer),
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

template <const Fold &fold, typename OpTy>
static LogicalResult lowerFold(OpLowering &op, OpTy args) {
  return lowerFold(op, args.getSelf(), reducedDims(op, args), fold);
}

/// Reduces the truth values of the elements.
static LogicalResult lowerTruthFold(OpLowering &op, Value self,
                                    ArrayRef<int64_t> dims, bool isAll) {
  Type from = op.dtype(self), boolType = op.builder.getI1Type();
  ScalarBuilder outer(op.builder, op.loc, boolType);
  Value result = op.tensors.reduce(
      op.tensor(self), dims, outer.boolean(isAll),
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

/// any and all.
template <bool isAll, typename OpTy>
static LogicalResult lowerTruthFold(OpLowering &op, OpTy args) {
  Value self = args.getSelf();
  // Unlike sum, any and all reduce no dimension if `dim` is the empty list.
  if constexpr (requires { args.getDim(); })
    if (op.isEmptyList(args.getDim())) {
      Type boolType = op.builder.getI1Type();
      Value truth =
          op.tensors.convert(op.tensor(self), op.dtype(self), boolType);
      return op.replaceWith(
          op.tensors.convert(truth, boolType, op.resultDtype()));
    }
  return lowerTruthFold(op, self, reducedDims(op, args), isAll);
}

/// Divides the sum, in the accumulator's dtype, by the number of elements, and
/// rounds once.
static LogicalResult lowerMean(OpLowering &op, Value self,
                               ArrayRef<int64_t> dims) {
  Type from = op.dtype(self), to = op.resultDtype();
  Type accumulator = computeDtypeOf(to);
  int64_t count = 1;
  for (int64_t dim : dims)
    count *= op.sizes(self)[dim];
  ScalarBuilder outer(op.builder, op.loc, accumulator);
  Value sum = op.tensors.reduce(
      op.tensor(self), dims, outer.integer(0),
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

template <typename OpTy>
static LogicalResult lowerMean(OpLowering &op, OpTy args) {
  return lowerMean(op, args.getSelf(), reducedDims(op, args));
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

/// Value and index along `dim` of the greatest or smallest element of `input`,
/// a tensor of the dtype `dtype`.
static SmallVector<Value> reduceWithIndex(OpLowering &op, Value input,
                                          Type dtype, int64_t dim, bool isMax) {
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

/// max.dim and min.dim: values and indices.
template <bool isMax, typename OpTy>
static LogicalResult lowerExtreme(OpLowering &op, OpTy args) {
  Value self = args.getSelf(), input = op.tensor(self);
  int64_t dim = op.dimension(args.getDim(), op.rank(self));
  if (op.rank(self) == 0)
    input = op.tensors.flatten(input);
  return op.replaceWith(reduceWithIndex(op, input, op.dtype(self), dim, isMax));
}

/// argmax and argmin; without dim, the result is a position in the flattened
/// tensor.
template <bool isMax, typename OpTy>
static LogicalResult lowerArgument(OpLowering &op, OpTy args) {
  Value self = args.getSelf(), input = op.tensor(self);
  int64_t dim = 0;
  if (op.isNone(args.getDim()) || op.rank(self) == 0)
    input = op.tensors.flatten(input);
  else
    dim = op.dimension(args.getDim(), op.rank(self));
  return op.replaceWith(
      reduceWithIndex(op, input, op.dtype(self), dim, isMax)[1]);
}

void torch_ltc::populateReductionLowerings(LoweringTable &table) {
  table.add(lowerFold<sumFold, AtenSumOp>);
  table.add(lowerFold<sumFold, AtenSumDimIntListOp>);
  table.add(lowerFold<productFold, AtenProdOp>);
  table.add(lowerFold<productFold, AtenProdDimIntOp>);
  table.add(lowerMean<AtenMeanOp>);
  table.add(lowerMean<AtenMeanDimOp>);
  table.add(lowerFold<maximumFold, AtenAmaxOp>);
  table.add(lowerFold<minimumFold, AtenAminOp>);
  table.add(lowerFold<maximumFold, AtenMaxOp>);
  table.add(lowerFold<minimumFold, AtenMinOp>);
  table.add(lowerExtreme<true, AtenMaxDimOp>);
  table.add(lowerExtreme<false, AtenMinDimOp>);
  table.add(lowerArgument<true, AtenArgmaxOp>);
  table.add(lowerArgument<false, AtenArgminOp>);
  table.add(lowerTruthFold<false, AtenAnyOp>);
  table.add(lowerTruthFold<false, AtenAnyDimOp>);
  table.add(lowerTruthFold<false, AtenAnyDimsOp>);
  table.add(lowerTruthFold<true, AtenAllOp>);
  table.add(lowerTruthFold<true, AtenAllDimOp>);
  table.add(lowerTruthFold<true, AtenAllDimsOp>);
}
