//===- Sort.cpp - Sorting along a dimension -------------------------------===//
//
// A bottom-up merge sort of each line, stable as torch's: pass after pass,
// sorted runs of 1, 2, 4, ... elements are merged in pairs from one tensor
// into another.
//
//===----------------------------------------------------------------------===//

#include "IndexBuilder.h"
#include "OpLowering.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace mlir::torch_ltc;

namespace {
class LineSort {
public:
  LineSort(OpLowering &op, ArrayRef<int64_t> sizes, int64_t dim,
           bool descending)
      : op(op), sizes(sizes), dim(dim), descending(descending),
        dtype(op.dtype(0)) {}

  /// Sorted values and their former positions along the dimension.
  std::pair<Value, Value> sort(Value input) {
    Value values = input;
    Value positions = op.tensors.fromIndices(
        sizes, op.builder.getI64Type(),
        [&](OpBuilder &nested, Location loc, ValueRange indices) {
          return IndexBuilder(nested, loc).toInteger(indices[dim]);
        });
    for (int64_t run = 1; run < sizes[dim]; run *= 2)
      std::tie(values, positions) = mergeRuns(values, positions, run);
    return {values, positions};
  }

private:
  /// Merges each pair of neighbouring runs of `run` elements.
  std::pair<Value, Value> mergeRuns(Value values, Value positions,
                                    int64_t run) {
    IndexBuilder b(op.builder, op.loc);
    SmallVector<int64_t> pairs(sizes);
    pairs[dim] = llvm::divideCeil(sizes[dim], 2 * run);
    SmallVector<Value> lows, highs, steps;
    for (int64_t count : pairs) {
      lows.push_back(b.constant(0));
      highs.push_back(b.constant(count));
      steps.push_back(b.constant(1));
    }
    SmallVector<Value> targets{
        op.tensors.empty(sizes, storageTypeOf(dtype)),
        op.tensors.empty(sizes, op.builder.getI64Type())};
    auto nest = scf::buildLoopNest(
        op.builder, op.loc, lows, highs, steps, targets,
        [&](OpBuilder &nested, Location loc, ValueRange indices,
            ValueRange carried) {
          IndexBuilder inner(nested, loc);
          return mergePair(inner, values, positions, run, indices, carried);
        });
    return {nest.results[0], nest.results[1]};
  }

  scf::ValueVector mergePair(IndexBuilder &b, Value values, Value positions,
                             int64_t run, ValueRange indices,
                             ValueRange carried) {
    Value count = b.constant(sizes[dim]);
    Value begin = b.mul(indices[dim], 2 * run);
    Value middle = b.min(b.add(begin, run), count);
    Value end = b.min(b.add(begin, 2 * run), count);
    auto merge = scf::ForOp::create(
        b.builder, b.loc, begin, end, b.constant(1),
        ValueRange{carried[0], carried[1], begin, middle},
        [&](OpBuilder &nested, Location loc, Value target, ValueRange state) {
          IndexBuilder inner(nested, loc);
          auto at = [&](Value tensor, Value position) {
            SmallVector<Value> place(indices);
            place[dim] = inner.min(position, inner.constant(sizes[dim] - 1));
            return inner.extract(tensor, place);
          };
          Value left = state[2], right = state[3];
          Value leftValue = at(values, left), rightValue = at(values, right);
          Value takesRight = comesFromRight(inner, left, middle, right, end,
                                            leftValue, rightValue);
          Value source = inner.select(takesRight, right, left);
          SmallVector<Value> place(indices);
          place[dim] = target;
          Value value = inner.select(takesRight, rightValue, leftValue);
          Value sorted = inner.insert(value, state[0], place);
          Value moved = inner.insert(at(positions, source), state[1], place);
          Value nextLeft = inner.select(takesRight, left, inner.add(left, 1));
          Value nextRight =
              inner.select(takesRight, inner.add(right, 1), right);
          scf::YieldOp::create(nested, loc,
                               ValueRange{sorted, moved, nextLeft, nextRight});
        });
    return {merge.getResult(0), merge.getResult(1)};
  }

  /// The right run's element is next only if the left run is used up, or if
  /// it comes strictly before the left one's.
  Value comesFromRight(IndexBuilder &b, Value left, Value middle, Value right,
                       Value end, Value leftValue, Value rightValue) {
    ScalarBuilder s(b.builder, b.loc, dtype);
    Value before = comesBefore(s, rightValue, leftValue);
    Value leftIsUsedUp = s.logicalNot(b.less(left, middle));
    return s.logicalAnd(b.less(right, end), s.logicalOr(leftIsUsedUp, before));
  }

  /// A NaN counts as greater than everything else.
  Value comesBefore(ScalarBuilder &s, Value a, Value b) {
    Value ordered =
        s.compare(descending ? Comparison::gt : Comparison::lt, a, b);
    if (!s.isFloat())
      return ordered;
    Value byNan = descending
                      ? s.logicalAnd(s.isNan(a), s.logicalNot(s.isNan(b)))
                      : s.logicalAnd(s.isNan(b), s.logicalNot(s.isNan(a)));
    return s.logicalOr(ordered, byNan);
  }

  OpLowering &op;
  ArrayRef<int64_t> sizes;
  int64_t dim;
  bool descending;
  Type dtype;
};
} // namespace

/// The first `count` elements of each sorted line.
static LogicalResult replaceBySorted(OpLowering &op, int64_t dim,
                                     bool descending,
                                     std::optional<int64_t> count) {
  SmallVector<int64_t> sizes(op.sizes(0));
  Value input = op.tensor(0);
  if (sizes.empty()) {
    sizes.push_back(1);
    input = op.tensors.flatten(input);
  }
  if (llvm::is_contained(sizes, 0))
    return op.replaceWith(
        {op.tensors.zeros(op.resultSizes(0), op.resultDtype(0)),
         op.tensors.zeros(op.resultSizes(1), op.resultDtype(1))});
  auto [values, positions] = LineSort(op, sizes, dim, descending).sort(input);
  if (count) {
    SmallVector<int64_t> offsets(sizes.size(), 0), strides(sizes.size(), 1);
    sizes[dim] = *count;
    values = op.tensors.slice(values, offsets, sizes, strides);
    positions = op.tensors.slice(positions, offsets, sizes, strides);
  }
  return op.replaceWith({values, positions});
}

/// sort(self, dim, descending)
static LogicalResult lowerSort(OpLowering &op) {
  return replaceBySorted(op, op.dimension(1, op.rank(0)), op.boolean(2),
                         std::nullopt);
}

/// sort.stable(self, stable, dim, descending)
static LogicalResult lowerStableSort(OpLowering &op) {
  return replaceBySorted(op, op.dimension(2, op.rank(0)), op.boolean(3),
                         std::nullopt);
}

/// topk(self, k, dim, largest, sorted)
static LogicalResult lowerTopk(OpLowering &op) {
  return replaceBySorted(op, op.dimension(2, op.rank(0)), op.boolean(3),
                         op.integer(1));
}

void torch_ltc::populateSortLowerings(LoweringTable &table) {
  table.add("aten.sort", lowerSort);
  table.add("aten.sort.stable", lowerStableSort);
  table.add("aten.topk", lowerTopk);
}
