//===- Slices.cpp - Parts of a tensor along one dimension -----------------===//
//
// A start or an index is a constant or a dynamic scalar. The part's sizes are
// always constants: they are those of one of the op's tensors.
//
//===----------------------------------------------------------------------===//

#include "IndexBuilder.h"
#include "OpArguments.h"

#include "torch_ltc/Dialect/Ltc/SizeOrder.h"

using namespace mlir;
using namespace mlir::torch_ltc;

namespace {
struct Slice {
  SmallVector<OpFoldResult> offsets;
  SmallVector<int64_t> sizes, strides;
};
} // namespace

/// The start of a part that spans `span` of `size` positions. A dynamic scalar
/// is clamped, so that no memory outside the tensor is accessed. `hasStep`: the
/// part's elements aren't consecutive.
static OpFoldResult readStart(OpLowering &op, unsigned position, int64_t size,
                              int64_t span, bool hasStep = false) {
  if (!op.isParameter(position))
    return op.builder.getIndexAttr(
        clampIndex(op.optionalInteger(position), 0, size));
  IndexBuilder b(op.builder, op.loc);
  Value number = op.number(position).value;
  if (!hasStep || !isForAllSizes(op.op))
    return b.fromElement(number, size, size - span);
  // If size, count and step all depend on sizes, `size - span` is no known
  // function of these, but `span` is one.
  Value start = b.fromElement(number, size, size);
  Value end = b.min(b.add(start, span), b.constant(size));
  return b.sub(end, b.constant(span));
}

static Slice wholeOf(OpLowering &op, ArrayRef<int64_t> sizes) {
  return {SmallVector<OpFoldResult>(sizes.size(), op.builder.getIndexAttr(0)),
          SmallVector<int64_t>(sizes), SmallVector<int64_t>(sizes.size(), 1)};
}

/// Reads the arguments dim, start, end, step, which begin at position `first`,
/// for a tensor of the sizes `sizes` and a slice of the sizes `partSizes`.
static Slice readSlice(OpLowering &op, ArrayRef<int64_t> sizes,
                       ArrayRef<int64_t> partSizes, unsigned first) {
  Slice slice = wholeOf(op, sizes);
  if (partSizes.size() != sizes.size()) {
    op.contradict();
    return slice;
  }
  int64_t dim = op.dimension(first, sizes.size());
  int64_t size = sizes[dim], step = op.integer(first + 3);
  int64_t count = partSizes[dim];
  if (!op.isParameter(first + 1) && !op.isParameter(first + 2)) {
    int64_t start = clampIndex(op.optionalInteger(first + 1), 0, size);
    int64_t end = clampIndex(op.optionalInteger(first + 2), size, size);
    count = end > start ? (end - start + step - 1) / step : 0;
  }
  int64_t span = count > 0 ? (count - 1) * step + 1 : 0;
  if (span > size)
    op.contradict();
  slice.offsets[dim] = readStart(op, first + 1, size, span, step != 1);
  slice.strides[dim] = step;
  slice.sizes[dim] = count;
  return slice;
}

/// Reads the arguments dim, index, which begin at position `first`, as a slice
/// of size 1.
static Slice readSelection(OpLowering &op, ArrayRef<int64_t> sizes,
                           unsigned first) {
  Slice slice = wholeOf(op, sizes);
  int64_t dim = op.dimension(first, sizes.size());
  slice.offsets[dim] = readStart(op, first + 1, sizes[dim], /*span=*/1);
  slice.sizes[dim] = 1;
  return slice;
}

static LogicalResult extract(OpLowering &op, const Slice &slice) {
  return op.replaceWith(op.tensors.slice(op.tensor(0), slice.offsets,
                                         slice.sizes, slice.strides));
}

static LogicalResult insert(OpLowering &op, Value source, Value tensor,
                            const Slice &slice) {
  source = op.tensors.reshape(source, slice.sizes);
  return op.replaceWith(
      op.tensors.insert(source, tensor, slice.offsets, slice.strides));
}

/// slice.Tensor(self, dim, start, end, step)
static LogicalResult lowerSlice(OpLowering &op) {
  return extract(op, readSlice(op, op.sizes(0), op.resultSizes(), 1));
}

/// select.int(self, dim, index)
static LogicalResult lowerSelect(OpLowering &op) {
  return extract(op, readSelection(op, op.sizes(0), 1));
}

/// The source of an insertion, converted to the dtype of `self`.
static Value insertionSource(OpLowering &op) {
  return op.tensors.convert(op.tensor(1), op.dtype(1), op.dtype(0));
}

/// slice_scatter(self, src, dim, start, end, step)
static LogicalResult lowerSliceScatter(OpLowering &op) {
  return insert(op, insertionSource(op), op.tensor(0),
                readSlice(op, op.sizes(0), op.sizes(1), 2));
}

/// select_scatter(self, src, dim, index)
static LogicalResult lowerSelectScatter(OpLowering &op) {
  return insert(op, insertionSource(op), op.tensor(0),
                readSelection(op, op.sizes(0), 2));
}

/// slice_backward(grad_output, input_sizes, dim, start, end, step)
static LogicalResult lowerSliceBackward(OpLowering &op) {
  Value zeros = op.tensors.zeros(op.resultSizes(), op.resultDtype());
  return insert(op, op.tensor(0), zeros,
                readSlice(op, op.resultSizes(), op.sizes(0), 2));
}

/// select_backward(grad_output, input_sizes, dim, index)
static LogicalResult lowerSelectBackward(OpLowering &op) {
  Value zeros = op.tensors.zeros(op.resultSizes(), op.resultDtype());
  return insert(op, op.tensor(0), zeros,
                readSelection(op, op.resultSizes(), 2));
}

void torch_ltc::populateSliceLowerings(LoweringTable &table) {
  table.add("aten.slice.Tensor", lowerSlice, {2, 3});
  table.add("aten.select.int", lowerSelect, {2});
  table.add("aten.slice_scatter", lowerSliceScatter, {3, 4});
  table.add("aten.select_scatter", lowerSelectScatter, {3});
  table.add("aten.slice_backward", lowerSliceBackward, {3, 4});
  table.add("aten.select_backward", lowerSelectBackward, {3});
}
