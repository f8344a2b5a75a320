//===- Sort.cpp - Sorting along a dimension -------------------------------===//
//
// An element's position is the number of elements that come before it. Of equal
// elements, the earlier one comes before the other, so the sort is stable. This
// takes n * n comparisons, but neither loops nor a comparator, so both dialects
// can express it.
//
//===----------------------------------------------------------------------===//

#include "RowAccess.h"

using namespace mlir;
using namespace mlir::torch_ltc;

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
static Value placesOf(TensorLowering &op, Value lines, bool descending) {
  int64_t batch = TensorTarget::sizesOf(lines)[0];
  int64_t size = TensorTarget::sizesOf(lines)[1];
  Type dtype = op.dtype(0), position = positionDtype(op);
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
/// along `dim` and their former positions.
static LogicalResult sortAlong(TensorLowering &op, int64_t dim, bool descending,
                               std::optional<int64_t> wanted) {
  if (failed(checkNotEmpty(op)))
    return failure();
  int64_t rank = op.rank(0);
  if (rank == 0)
    return op.replaceWith({op.tensor(0), op.zeros({}, op.resultDtype(1))});
  dim += dim < 0 ? rank : 0;
  int64_t size = op.sizes(0)[dim], count = wanted.value_or(size);
  int64_t batch = op.tensorType(0).getNumElements() / size;
  SmallVector<int64_t> order = lastOrder(rank, dim), sizes;
  for (int64_t original : order)
    sizes.push_back(op.sizes(0)[original]);
  sizes.back() = count;
  Value lines = op.target.reshape(op.target.transpose(op.tensor(0), order),
                                  {batch, size});
  // For each position k of the result, the sum selects the former position of
  // the element whose sorted position is k.
  Value places =
      op.target.reshape(placesOf(op, lines, descending), {batch, 1, size});
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

void torch_ltc::populateSortTensorLowerings(TensorLoweringTable &table) {
  table.add("aten.sort", [](TensorLowering &op) {
    return sortAlong(op, op.integer(1), op.boolean(2), std::nullopt);
  });
  table.add("aten.sort.stable", [](TensorLowering &op) {
    return sortAlong(op, op.integer(2), op.boolean(3), std::nullopt);
  });
  table.add("aten.topk", [](TensorLowering &op) {
    return sortAlong(op, op.integer(2), op.boolean(3), op.integer(1));
  });
}
