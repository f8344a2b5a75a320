//===- DecomposePortable.cpp - Decompositions for other compilers ---------===//
//
// Other compilers of the torch dialect have no lowering for some gradients,
// scatters and searches. For these compilers (option `portable`), the patterns
// express such ops by concatenations, products and comparisons. This takes more
// memory, for example for the matrix of an embedding's lookups or for all pairs
// of a search.
//
//===----------------------------------------------------------------------===//

#include "FormulaBuilder.h"

#include "torch_ltc/Dialect/Torch/TorchOps_data_movement.h"
#include "torch_ltc/Dialect/Torch/TorchOps_elementwise.h"
#include "torch_ltc/Dialect/Torch/TorchOps_embedding.h"
#include "torch_ltc/Dialect/Torch/TorchOps_indexing.h"
#include "torch_ltc/Dialect/Torch/TorchOps_pooling.h"

using namespace mlir;
using namespace mlir::torch_ltc;
using namespace mlir::torch_ltc::torch;

/// Pads `x` with zeros along a dimension.
static Value pad(FormulaBuilder &b, Value x, int64_t dim, int64_t before,
                 int64_t after) {
  SmallVector<Value> parts;
  SmallVector<int64_t> sizes(b.sizes(x)), result(b.sizes(x));
  auto addZeros = [&](int64_t count) {
    sizes[dim] = count;
    if (count > 0)
      parts.push_back(b.zeros(sizes, b.dtype(x)));
  };
  addZeros(before);
  parts.push_back(x);
  addZeros(after);
  result[dim] += before + after;
  return parts.size() == 1 ? x : b.concatenate(parts, dim, result);
}

/// Inserts `step - 1` zeros between neighbors along a dimension.
static Value dilate(FormulaBuilder &b, Value x, int64_t dim, int64_t step) {
  if (step == 1)
    return x;
  SmallVector<int64_t> sizes(b.sizes(x));
  sizes[dim] *= step;
  Value spread =
      b.view(pad(b, b.unsqueeze(x, dim + 1), dim + 1, 0, step - 1), sizes);
  return b.slice(spread, dim, 0, sizes[dim] - step + 1);
}

static LogicalResult decomposeSelectBackward(AtenSelectBackwardOp op,
                                             FormulaBuilder &b) {
  ArrayRef<int64_t> sizes = b.resultSizes();
  int64_t dim = b.dimension(op.getDim(), sizes.size());
  int64_t index = b.integer(op.getIndex());
  if (index < 0)
    index += sizes[dim];
  Value grad = b.unsqueeze(op.getGradOutput(), dim);
  return b.replaceWith({pad(b, grad, dim, index, sizes[dim] - index - 1)});
}

static LogicalResult decomposeSliceBackward(AtenSliceBackwardOp op,
                                            FormulaBuilder &b) {
  ArrayRef<int64_t> sizes = b.resultSizes();
  int64_t dim = b.dimension(op.getDim(), sizes.size());
  int64_t size = sizes[dim], start = b.integer(op.getStart());
  if (b.numElements(op.getGradOutput()) == 0)
    return b.replaceWith({b.zeros(sizes, b.resultDtype())});
  start = std::clamp<int64_t>(start < 0 ? start + size : start, 0, size);
  Value grad = dilate(b, op.getGradOutput(), dim, b.integer(op.getStep()));
  int64_t after = size - start - b.sizes(grad)[dim];
  return b.replaceWith({pad(b, grad, dim, start, after)});
}

// x > 0 ? x : weight * x
static LogicalResult decomposePrelu(Aten_PreluKernelOp op, FormulaBuilder &b) {
  Value x = b.compute(op.getSelf());
  Value scaled = b.mul(x, b.compute(op.getWeight()));
  return b.replaceWith({b.where(b.gt(x, 0.0), x, scaled)});
}

namespace {
// A window of average pooling along one dimension.
struct Window {
  int64_t dim, size, outputs, kernel, stride, padding;

  int64_t start(int64_t i) const { return i * stride - padding; }
  int64_t end(int64_t i) const {
    return std::min(start(i) + kernel, size + padding);
  }
  /// Number of elements in the i-th average.
  int64_t count(int64_t i, bool withPadding) const {
    if (withPadding)
      return end(i) - start(i);
    return std::min(end(i), size) - std::max<int64_t>(start(i), 0);
  }
  bool isAlwaysFull(bool withPadding) const {
    for (int64_t i = 0; i < outputs; ++i)
      if (count(i, withPadding) != kernel)
        return false;
    return true;
  }
};
} // namespace

/// The divisors of all outputs (`Window::count`), as a tensor of int64.
static Value counts(FormulaBuilder &b, const Window &w, bool withPadding) {
  Value start =
      b.sub(b.mul(b.arange(w.outputs), Number(w.stride)), Number(w.padding));
  Value end = b.clampMax(b.add(start, Number(w.kernel)),
                         double(withPadding ? w.size + w.padding : w.size));
  return b.sub(end, withPadding ? start : b.clampMin(start, 0.0));
}

/// Sums, for each input element, the gradients `grad` of the outputs whose
/// windows contain the element.
static Value spread(FormulaBuilder &b, Value grad, const Window &w) {
  Value apart = dilate(b, grad, w.dim, w.stride);
  int64_t length = b.sizes(apart)[w.dim];
  int64_t total = std::max(length + w.kernel - 1, w.size + 2 * w.padding);
  Value sum;
  for (int64_t offset = 0; offset < w.kernel; ++offset) {
    Value part = pad(b, apart, w.dim, offset, total - offset - length);
    sum = sum ? b.add(sum, part) : part;
  }
  return b.slice(sum, w.dim, w.padding, w.padding + w.size);
}

static LogicalResult decomposeAvgPool2dBackward(AtenAvgPool2dBackwardOp op,
                                                FormulaBuilder &b) {
  Value grad = b.compute(op.getGradOutput());
  int64_t rank = b.rank(op.getSelf());
  SmallVector<int64_t> kernel = b.integers(op.getKernelSize());
  SmallVector<int64_t> stride = b.integers(op.getStride());
  SmallVector<int64_t> padding = b.integers(op.getPadding());
  if (stride.empty())
    stride = kernel;
  Window windows[2];
  for (int64_t i = 0; i < 2; ++i) {
    auto at = [&](ArrayRef<int64_t> list) {
      return list[std::min<size_t>(i, list.size() - 1)];
    };
    int64_t dim = rank - 2 + i;
    windows[i] = {dim,
                  b.sizes(op.getSelf())[dim],
                  b.sizes(grad)[dim],
                  at(kernel),
                  at(stride),
                  at(padding)};
  }
  bool withPadding = b.boolean(op.getCountIncludePad());
  auto &[rows, columns] = windows;
  if (!b.isNone(op.getDivisorOverride())) {
    grad = b.div(grad, double(b.integer(op.getDivisorOverride())));
  } else if (rows.isAlwaysFull(withPadding) &&
             columns.isAlwaysFull(withPadding)) {
    grad = b.div(grad, double(rows.kernel * columns.kernel));
  } else {
    Value area = b.mul(b.unsqueeze(counts(b, rows, withPadding), 1),
                       b.unsqueeze(counts(b, columns, withPadding), 0));
    grad = b.div(grad, b.cast(area, b.dtype(grad)));
  }
  return b.replaceWith({spread(b, spread(b, grad, rows), columns)});
}

/// A matrix [size, n] of bools for n indices: element (i, j) is true if index j
/// is i.
static Value lookups(FormulaBuilder &b, Value indices, int64_t size) {
  Value flat = b.view(indices, {b.numElements(indices)});
  return b.eq(b.unsqueeze(b.cast(b.arange(size), b.dtype(flat)), 1),
              b.unsqueeze(flat, 0));
}

static LogicalResult
decomposeEmbeddingDenseBackward(AtenEmbeddingDenseBackwardOp op,
                                FormulaBuilder &b) {
  Value grad = b.compute(op.getGradOutput());
  int64_t rows = b.resultSizes()[0], width = b.resultSizes()[1];
  Value found = lookups(b, op.getIndices(), rows);
  int64_t unused = b.integer(op.getPaddingIdx());
  if (unused >= 0)
    found = b.logicalAnd(found,
                         b.unsqueeze(b.ne(b.arange(rows), Number(unused)), 1));
  found = b.cast(found, b.dtype(grad));
  Value sum =
      b.mm(found, b.view(grad, {b.numElements(op.getIndices()), width}));
  if (b.boolean(op.getScaleGradByFreq()))
    sum = b.div(sum, b.clampMin(b.sum(found, {1}, /*keepDim=*/true), 1.0));
  return b.replaceWith({sum});
}

static LogicalResult decomposeIndexAdd(AtenIndexAddOp op, FormulaBuilder &b) {
  Value self = b.compute(op.getSelf()), source = b.compute(op.getSource());
  int64_t rank = b.rank(self);
  if (rank == 0)
    return b.fail("its operand has no dimensions");
  int64_t dim = b.dimension(op.getDim(), rank), size = b.sizes(self)[dim];
  int64_t count = b.numElements(op.getIndex());
  SmallVector<int64_t> toFront{dim}, back, sizes{size};
  for (int64_t i = 0; i < rank; ++i) {
    back.push_back(i == dim ? 0 : i < dim ? i + 1 : i);
    if (i == dim)
      continue;
    toFront.push_back(i);
    sizes.push_back(b.sizes(self)[i]);
  }
  int64_t width = b.numElements(self) / size;
  Value lines = b.view(b.permute(source, toFront), {count, width});
  Value found = lookups(b, op.getIndex(), size), sum;
  if (isa<mlir::FloatType>(b.dtype(self))) {
    sum = b.mm(b.cast(found, b.dtype(self)), lines);
  } else {
    SmallVector<int64_t> pairs{size, count, width};
    Value some = b.expand(b.unsqueeze(found, 2), pairs);
    Value all = b.expand(b.unsqueeze(lines, 0), pairs);
    sum = b.sum(b.where(some, all, b.zeros(pairs, b.dtype(self))), {1},
                /*keepDim=*/false);
  }
  sum = b.mul(b.cast(sum, b.dtype(self)), b.number(op.getAlpha()));
  return b.replaceWith({b.add(self, b.permute(b.view(sum, sizes), back))});
}

/// Replaces the op by the number of sorted elements before each value.
static LogicalResult countBefore(FormulaBuilder &b, Value isBefore) {
  Value ones = b.cast(isBefore, b.dtype(b.arange(1)));
  return b.replaceWith(
      {b.sum(ones, {b.rank(isBefore) - 1}, /*keepDim=*/false)});
}

template <typename OpTy> static bool isRight(OpTy op, FormulaBuilder &b) {
  return b.boolean(op.getRight()) ||
         (!b.isNone(op.getSide()) && b.string(op.getSide()) == "right");
}

static LogicalResult decomposeSearchSorted(AtenSearchsortedTensorOp op,
                                           FormulaBuilder &b) {
  if (!b.isNone(op.getSorter()))
    return b.fail("its `sorter` is a tensor");
  Value values = b.unsqueeze(op.getSelf(), b.rank(op.getSelf()));
  Value sorted = op.getSortedSequence();
  sorted = b.unsqueeze(sorted, b.rank(sorted) - 1);
  return countBefore(b, isRight(op, b) ? b.le(sorted, values)
                                       : b.lt(sorted, values));
}

static LogicalResult decomposeSearchSortedScalar(AtenSearchsortedScalarOp op,
                                                 FormulaBuilder &b) {
  if (!b.isNone(op.getSorter()))
    return b.fail("its `sorter` is a tensor");
  Value sorted = op.getSortedSequence();
  Number value = b.number(op.getSelf());
  return countBefore(b, isRight(op, b) ? b.le(sorted, value)
                                       : b.lt(sorted, value));
}

void mlir::torch_ltc::populatePortableDecompositionPatterns(
    RewritePatternSet &patterns, const DecompositionOptions &options) {
  DecompositionAdder adder(patterns, options);
  adder.add(decomposeSelectBackward, DynamicScalars::None);
  adder.add(decomposeSliceBackward, DynamicScalars::None);
  adder.add(decomposePrelu);
  adder.add(decomposeAvgPool2dBackward);
  adder.add(decomposeEmbeddingDenseBackward);
  adder.add(decomposeIndexAdd);
  adder.add(decomposeSearchSorted);
  adder.add(decomposeSearchSortedScalar);
}
