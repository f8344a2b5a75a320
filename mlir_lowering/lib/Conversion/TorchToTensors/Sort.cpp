//===- Sort.cpp - Sorting along a dimension -------------------------------===//
//
// An element's position is the number of elements that come before it. Of equal
// elements, the earlier one comes before the other, so the sort is stable. This
// takes n * n comparisons, but neither loops nor a comparator, so both dialects
// can express it.
//
//===----------------------------------------------------------------------===//

#include "RowAccess.h"

#include "torch_ltc/Dialect/Torch/TorchOps_reduction.h"

using namespace mlir;
using namespace mlir::torch_ltc;
using namespace mlir::torch_ltc::torch::ops;

/// Whether `a` comes strictly before `b`; NaN is the greatest element.
static Value comesBefore(ScalarBuilder &s, Value a, Value b, bool descending) {
  Value ordered = s.compare(descending ? Comparison::gt : Comparison::lt, a, b);
  if (!s.isFloat())
    return ordered;
  Value byNan = descending ? s.logicalAnd(s.isNan(a), s.logicalNot(s.isNan(b)))
                           : s.logicalAnd(s.isNan(b), s.logicalNot(s.isNan(a)));
  return s.logicalOr(ordered, byNan);
}

/// The positions [b, n] of the elements of `lines` [b, n] in the sorted lines.
static Value placesOf(TensorLowering &op, Value lines, Type dtype,
                      bool descending) {
  int64_t batch = TensorTarget::sizesOf(lines)[0];
  int64_t size = TensorTarget::sizesOf(lines)[1];
  Type position = positionDtype(op);
  Value isBefore = op.compute(
      {batch, size, size},
      {op.target.reshape(lines, {batch, 1, size}),
       op.target.reshape(lines, {batch, size, 1}),
       positionRange(op, {1, 1, size}), positionRange(op, {1, size, 1})},
      [&](OpBuilder &nested, OpLowering &, ValueRange elements) {
        ScalarBuilder s(nested, op.loc, dtype), p(nested, op.loc, position);
        Value before = comesBefore(s, elements[0], elements[1], descending);
        Value after = comesBefore(s, elements[1], elements[0], descending);
        Value earlier = p.compare(Comparison::lt, elements[2], elements[3]);
        Value tie = s.logicalAnd(s.logicalNot(after), earlier);
        return s.convert(s.logicalOr(before, tie), nested.getI1Type(),
                         position);
      });
  return op.target.reduce(ReductionKind::Sum, isBefore, {2});
}

/// Replaces the op by the first `wanted` (by default, all) sorted elements
/// along the op's dimension and their former positions.
template <typename OpTy>
static LogicalResult sortAlong(TensorLowering &op, OpTy args, Value descending,
                               std::optional<int64_t> wanted) {
  if (failed(checkNotEmpty(op)))
    return failure();
  Value self = op.tensor(args.getSelf());
  ArrayRef<int64_t> given = op.sizes(args.getSelf());
  if (given.empty())
    return op.replaceWith({self, op.zeros({}, op.resultDtype(1))});
  int64_t dim = op.dimension(args.getDim(), given.size());
  int64_t size = given[dim], count = wanted.value_or(size);
  int64_t batch = ShapedType::getNumElements(given) / size;
  SmallVector<int64_t> order = lastOrder(given.size(), dim), sizes;
  for (int64_t original : order)
    sizes.push_back(given[original]);
  sizes.back() = count;
  Value lines =
      op.target.reshape(op.target.transpose(self, order), {batch, size});
  // For each position k of the result, the sum selects the former position of
  // the element whose sorted position is k.
  Value places =
      placesOf(op, lines, op.dtype(args.getSelf()), op.boolean(descending));
  places = op.target.reshape(places, {batch, 1, size});
  Value owners = op.select(op.equal(places, positionRange(op, {1, count, 1})),
                           positionRange(op, {1, 1, size}),
                           op.zeros({1, 1, 1}, positionDtype(op)));
  Value origins = op.target.reduce(ReductionKind::Sum, owners, {2});
  Value sorted =
      op.target.gather(op.target.reshape(lines, {batch, size, 1}), origins);
  auto back = [&](Value tensor) {
    return op.target.transpose(op.target.reshape(tensor, sizes),
                               inversePermutation(order));
  };
  return op.replaceWith(
      {back(sorted),
       op.convert(back(origins), positionDtype(op), op.resultDtype(1))});
}

template <typename OpTy>
static LogicalResult lowerSort(TensorLowering &op, OpTy args) {
  return sortAlong(op, args, args.getDescending(), /*wanted=*/std::nullopt);
}

static LogicalResult lowerTopk(TensorLowering &op, AtenTopkOp args) {
  return sortAlong(op, args, args.getLargest(), op.integer(args.getK()));
}

void torch_ltc::populateSortTensorLowerings(TensorLoweringTable &table) {
  table.add(lowerSort<AtenSortOp>);
  table.add(lowerSort<AtenSortStableOp>);
  table.add(lowerTopk);
}
