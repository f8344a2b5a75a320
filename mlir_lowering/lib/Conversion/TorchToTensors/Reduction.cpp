//===- Reduction.cpp - Reductions on tensors ------------------------------===//
//
// The ops' arguments are (self, dim, keepdim, ...), or (self) for a reduction
// of all dimensions.
//
//===----------------------------------------------------------------------===//

#include "TensorLowering.h"

using namespace mlir;
using namespace mlir::torch_ltc;

static SmallVector<int64_t> reducedDims(TensorLowering &op, bool hasDim) {
  if (!hasDim || op.isNone(1))
    return llvm::to_vector(llvm::seq<int64_t>(0, op.rank(0)));
  return op.dimensions(1, op.rank(0));
}

/// The reduction `kind` for elements of `dtype`: the maximum and minimum of
/// bools are `or` and `and`.
static ReductionKind kindOf(ReductionKind kind, Type dtype) {
  if (!isBool(dtype))
    return kind;
  return kind == ReductionKind::Maximum ? ReductionKind::Or
                                        : ReductionKind::And;
}

/// Converts the elements to the dtype in which torch's CPU kernels accumulate
/// (float32 for the 16-bit floats), and rounds the result once.
template <ReductionKind kind, bool hasDim>
static LogicalResult lowerFold(TensorLowering &op) {
  Type accumulator = computeDtypeOf(op.resultDtype());
  Value result =
      op.target.reduce(kindOf(kind, accumulator), op.operandAs(0, accumulator),
                       reducedDims(op, hasDim));
  return op.replaceWith(op.convert(result, accumulator, op.resultDtype()));
}

/// any and all: reduce the truth values of the elements.
template <ReductionKind kind, bool hasDim>
static LogicalResult lowerTruthFold(TensorLowering &op) {
  Type boolType = op.builder.getI1Type();
  Value truth = op.operandAs(0, boolType);
  // Unlike sum, any and all reduce no dimension if `dim` is the empty list.
  bool none = hasDim && op.isEmptyList(1);
  Value result =
      none ? truth : op.target.reduce(kind, truth, reducedDims(op, hasDim));
  // For uint8, the results of torch's any and all are uint8.
  return op.replaceWith(op.convert(result, boolType, op.resultDtype()));
}

/// The first position along `dim` of an element that equals `extreme` or is
/// NaN: the minimum of the positions of such elements.
static Value positionOf(TensorLowering &op, Value tensor, Value extreme,
                        Type dtype, int64_t dim) {
  SmallVector<int64_t> kept(TensorTarget::sizesOf(tensor));
  int64_t size = kept[dim];
  kept[dim] = 1;
  SmallVector<int64_t> alongDim(kept.size(), 1);
  alongDim[dim] = size;
  Type i64 = op.builder.getI64Type();
  Value positions = op.target.reshape(op.target.iota(size, i64), alongDim);
  Value candidates =
      op.compute(TensorTarget::sizesOf(tensor),
                 {tensor, op.target.reshape(extreme, kept), positions},
                 [&](OpBuilder &nested, OpLowering &, ValueRange elements) {
                   ScalarBuilder s(nested, op.loc, dtype);
                   Value isExtreme = s.logicalOr(
                       s.compare(Comparison::eq, elements[0], elements[1]),
                       s.isNan(elements[0]));
                   Value behind = arith::ConstantOp::create(
                       nested, op.loc, nested.getI64IntegerAttr(size));
                   return s.select(isExtreme, elements[2], behind);
                 });
  return op.target.reduce(ReductionKind::Minimum, candidates, dim);
}

/// max.dim and min.dim: (self, dim, keepdim)
template <ReductionKind kind>
static LogicalResult lowerWithPosition(TensorLowering &op) {
  if (op.rank(0) == 0)
    return op.replaceWith(
        {op.tensor(0), op.zeros({}, op.builder.getI64Type())});
  int64_t dim = op.dimension(1, op.rank(0));
  Value extreme =
      op.target.reduce(kindOf(kind, op.dtype(0)), op.tensor(0), dim);
  return op.replaceWith(
      {extreme, positionOf(op, op.tensor(0), extreme, op.dtype(0), dim)});
}

/// argmax and argmin: (self, dim, keepdim)
template <ReductionKind kind>
static LogicalResult lowerPosition(TensorLowering &op) {
  if (op.rank(0) == 0)
    return op.replaceWith(op.zeros({}, op.resultDtype()));
  bool flat = op.isNone(1);
  Value tensor = flat ? op.flatten(op.tensor(0)) : op.tensor(0);
  int64_t dim = flat ? 0 : op.dimension(1, op.rank(0));
  Value extreme = op.target.reduce(kindOf(kind, op.dtype(0)), tensor, dim);
  return op.replaceWith(positionOf(op, tensor, extreme, op.dtype(0), dim));
}

void torch_ltc::populateReductionTensorLowerings(TensorLoweringTable &table) {
  using enum ReductionKind;
  table.add("aten.sum", lowerFold<Sum, false>);
  table.add("aten.sum.dim_IntList", lowerFold<Sum, true>);
  table.add("aten.prod", lowerFold<Product, false>);
  table.add("aten.prod.dim_int", lowerFold<Product, true>);
  table.add("aten.amax", lowerFold<Maximum, true>);
  table.add("aten.amin", lowerFold<Minimum, true>);
  table.add("aten.max", lowerFold<Maximum, false>);
  table.add("aten.min", lowerFold<Minimum, false>);
  table.add("aten.any", lowerTruthFold<Or, false>);
  table.add("aten.any.dim", lowerTruthFold<Or, true>);
  table.add("aten.any.dims", lowerTruthFold<Or, true>);
  table.add("aten.all", lowerTruthFold<And, false>);
  table.add("aten.all.dim", lowerTruthFold<And, true>);
  table.add("aten.all.dims", lowerTruthFold<And, true>);
  table.add("aten.max.dim", lowerWithPosition<Maximum>);
  table.add("aten.min.dim", lowerWithPosition<Minimum>);
  table.add("aten.argmax", lowerPosition<Maximum>);
  table.add("aten.argmin", lowerPosition<Minimum>);
}
