//===- Reduction.cpp - Reductions on tensors ------------------------------===//
//===----------------------------------------------------------------------===//

#include "TensorLowering.h"

#include "../TorchToLinalg/OpArguments.h"

#include "torch_ltc/Dialect/Torch/TorchOps_reduction.h"

using namespace mlir;
using namespace mlir::torch_ltc;
using namespace mlir::torch_ltc::torch::ops;

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
template <ReductionKind kind, typename OpTy>
static LogicalResult lowerFold(TensorLowering &op, OpTy args) {
  Type accumulator = computeDtypeOf(op.resultDtype());
  Value result = op.target.reduce(kindOf(kind, accumulator),
                                  op.operandAs(args.getSelf(), accumulator),
                                  reducedDims(op, args));
  return op.replaceWith(op.convert(result, accumulator, op.resultDtype()));
}

/// any and all: reduce the truth values of the elements.
template <ReductionKind kind, typename OpTy>
static LogicalResult lowerTruthFold(TensorLowering &op, OpTy args) {
  Type boolType = op.builder.getI1Type();
  Value truth = op.operandAs(args.getSelf(), boolType);
  // Unlike sum, any and all reduce no dimension if `dim` is the empty list.
  bool none = false;
  if constexpr (requires { args.getDim(); })
    none = op.isEmptyList(args.getDim());
  Value result =
      none ? truth : op.target.reduce(kind, truth, reducedDims(op, args));
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

/// max.dim and min.dim
template <ReductionKind kind, typename OpTy>
static LogicalResult lowerWithPosition(TensorLowering &op, OpTy args) {
  Value self = op.tensor(args.getSelf());
  Type dtype = op.dtype(args.getSelf());
  int64_t rank = op.rank(args.getSelf());
  if (rank == 0)
    return op.replaceWith({self, op.zeros({}, op.builder.getI64Type())});
  int64_t dim = op.dimension(args.getDim(), rank);
  Value extreme = op.target.reduce(kindOf(kind, dtype), self, dim);
  return op.replaceWith({extreme, positionOf(op, self, extreme, dtype, dim)});
}

/// argmax and argmin
template <ReductionKind kind, typename OpTy>
static LogicalResult lowerPosition(TensorLowering &op, OpTy args) {
  Value tensor = op.tensor(args.getSelf());
  Type dtype = op.dtype(args.getSelf());
  int64_t rank = op.rank(args.getSelf()), dim = 0;
  if (rank == 0)
    return op.replaceWith(op.zeros({}, op.resultDtype()));
  if (op.isNone(args.getDim()))
    tensor = op.flatten(tensor);
  else
    dim = op.dimension(args.getDim(), rank);
  Value extreme = op.target.reduce(kindOf(kind, dtype), tensor, dim);
  return op.replaceWith(positionOf(op, tensor, extreme, dtype, dim));
}

void torch_ltc::populateReductionTensorLowerings(TensorLoweringTable &table) {
  using enum ReductionKind;
  table.add(lowerFold<Sum, AtenSumOp>);
  table.add(lowerFold<Sum, AtenSumDimIntListOp>);
  table.add(lowerFold<Product, AtenProdOp>);
  table.add(lowerFold<Product, AtenProdDimIntOp>);
  table.add(lowerFold<Maximum, AtenAmaxOp>);
  table.add(lowerFold<Minimum, AtenAminOp>);
  table.add(lowerFold<Maximum, AtenMaxOp>);
  table.add(lowerFold<Minimum, AtenMinOp>);
  table.add(lowerTruthFold<Or, AtenAnyOp>);
  table.add(lowerTruthFold<Or, AtenAnyDimOp>);
  table.add(lowerTruthFold<Or, AtenAnyDimsOp>);
  table.add(lowerTruthFold<And, AtenAllOp>);
  table.add(lowerTruthFold<And, AtenAllDimOp>);
  table.add(lowerTruthFold<And, AtenAllDimsOp>);
  table.add(lowerWithPosition<Maximum, AtenMaxDimOp>);
  table.add(lowerWithPosition<Minimum, AtenMinDimOp>);
  table.add(lowerPosition<Maximum, AtenArgmaxOp>);
  table.add(lowerPosition<Minimum, AtenArgminOp>);
}
