//===- DataMovement.cpp - Views, slices, concatenations, pads on tensors --===//

#include "TensorLowering.h"

#include "../TorchToLinalg/OpArguments.h"

using namespace mlir;
using namespace mlir::torch_ltc;

//===----------------------------------------------------------------------===//
// Reshapes and permutations
//===----------------------------------------------------------------------===//

/// view, squeeze, unsqueeze and similar ops: `replaceWith` reshapes the operand
/// to the result type.
static LogicalResult lowerReshape(TensorLowering &op) {
  return op.replaceWith(op.tensor(0));
}

static LogicalResult lowerPermute(TensorLowering &op) {
  return op.replaceWith(op.target.transpose(op.tensor(0), permutationOf(op)));
}

/// transpose.int(self, dim0, dim1) and t(self)
static LogicalResult lowerTranspose(TensorLowering &op) {
  if (op.rank(0) < 2)
    return op.replaceWith(op.tensor(0));
  return op.replaceWith(op.target.transpose(op.tensor(0), transpositionOf(op)));
}

static LogicalResult lowerExpand(TensorLowering &op) {
  return op.replaceWith(op.target.broadcast(op.tensor(0), op.resultSizes()));
}

/// repeat(self, repeats)
static LogicalResult lowerRepeat(TensorLowering &op) {
  RepeatedSizes sizes(op);
  Value input = op.target.reshape(op.tensor(0), sizes.split);
  return op.replaceWith(op.target.broadcast(input, sizes.repeated));
}

/// flip(self, dims)
static LogicalResult lowerFlip(TensorLowering &op) {
  if (op.isEmptyList(1) || op.rank(0) == 0)
    return op.replaceWith(op.tensor(0));
  return op.replaceWith(
      op.target.reverse(op.tensor(0), op.dimensions(1, op.rank(0))));
}

//===----------------------------------------------------------------------===//
// Slices
//===----------------------------------------------------------------------===//

namespace {
/// `count` positions along one dimension, starting at `start`, `step` apart.
struct Slice {
  int64_t dim, start, count, step;
};
} // namespace

/// Reads the arguments dim, start, end, step, which begin at position `first`,
/// for a tensor of the sizes `sizes`.
static Slice readSlice(TensorLowering &op, ArrayRef<int64_t> sizes,
                       unsigned first) {
  int64_t dim = op.dimension(first, sizes.size());
  int64_t start = clampIndex(op.optionalInteger(first + 1), 0, sizes[dim]);
  int64_t end =
      clampIndex(op.optionalInteger(first + 2), sizes[dim], sizes[dim]);
  int64_t step = op.integer(first + 3);
  return {dim, start, end > start ? (end - start + step - 1) / step : 0, step};
}

/// Reads the arguments dim, index, which begin at position `first`, as a slice
/// of size 1.
static Slice readSelection(TensorLowering &op, ArrayRef<int64_t> sizes,
                           unsigned first) {
  int64_t dim = op.dimension(first, sizes.size());
  int64_t index = op.integer(first + 1);
  return {dim, index < 0 ? index + sizes[dim] : index, 1, 1};
}

static Value extract(TensorLowering &op, Value tensor, const Slice &slice) {
  SmallVector<int64_t> sizes(TensorTarget::sizesOf(tensor));
  SmallVector<int64_t> offsets(sizes.size(), 0), strides(sizes.size(), 1);
  offsets[slice.dim] = slice.start;
  sizes[slice.dim] = slice.count;
  strides[slice.dim] = slice.step;
  return op.target.slice(tensor, offsets, sizes, strides);
}

/// A tensor of the sizes `sizes` with the elements of `source` in the slice and
/// zeros elsewhere.
static Value spread(TensorLowering &op, Value source, const Slice &slice,
                    ArrayRef<int64_t> sizes, Type dtype) {
  SmallVector<int64_t> sliceSizes(sizes), low(sizes.size(), 0),
      high(sizes.size(), 0), interior(sizes.size(), 0);
  sliceSizes[slice.dim] = slice.count;
  if (slice.count == 0)
    return op.zeros(sizes, dtype);
  source = op.target.reshape(source, sliceSizes);
  int64_t last = slice.start + (slice.count - 1) * slice.step;
  low[slice.dim] = slice.start;
  high[slice.dim] = sizes[slice.dim] - last - 1;
  interior[slice.dim] = slice.step - 1;
  return op.target.pad(source, low, high, interior, op.scalar(dtype, 0));
}

/// Replaces the op by `tensor`, in which `source` replaces the elements of the
/// slice.
static LogicalResult insert(TensorLowering &op, Value source, Value tensor,
                            const Slice &slice) {
  ArrayRef<int64_t> sizes = op.resultSizes();
  SmallVector<bool> isInside(sizes[slice.dim], false);
  for (int64_t i = 0; i < slice.count; ++i)
    isInside[slice.start + i * slice.step] = true;
  SmallVector<int64_t> maskSizes(sizes.size(), 1);
  maskSizes[slice.dim] = sizes[slice.dim];
  Value spreadSource = spread(op, source, slice, sizes, op.resultDtype());
  return op.replaceWith(op.select(op.constantBooleans(maskSizes, isInside),
                                  spreadSource, tensor));
}

/// slice.Tensor(self, dim, start, end, step)
static LogicalResult lowerSlice(TensorLowering &op) {
  return op.replaceWith(
      extract(op, op.tensor(0), readSlice(op, op.sizes(0), 1)));
}

/// select.int(self, dim, index)
static LogicalResult lowerSelect(TensorLowering &op) {
  return op.replaceWith(
      extract(op, op.tensor(0), readSelection(op, op.sizes(0), 1)));
}

/// slice_scatter(self, src, dim, start, end, step)
static LogicalResult lowerSliceScatter(TensorLowering &op) {
  return insert(op, op.operandAs(1, op.resultDtype()), op.tensor(0),
                readSlice(op, op.sizes(0), 2));
}

/// select_scatter(self, src, dim, index)
static LogicalResult lowerSelectScatter(TensorLowering &op) {
  return insert(op, op.operandAs(1, op.resultDtype()), op.tensor(0),
                readSelection(op, op.sizes(0), 2));
}

/// slice_backward(grad_output, input_sizes, dim, start, end, step)
static LogicalResult lowerSliceBackward(TensorLowering &op) {
  return op.replaceWith(spread(op, op.tensor(0),
                               readSlice(op, op.resultSizes(), 2),
                               op.resultSizes(), op.resultDtype()));
}

/// select_backward(grad_output, input_sizes, dim, index)
static LogicalResult lowerSelectBackward(TensorLowering &op) {
  return op.replaceWith(spread(op, op.tensor(0),
                               readSelection(op, op.resultSizes(), 2),
                               op.resultSizes(), op.resultDtype()));
}

//===----------------------------------------------------------------------===//
// Concatenation, pads and triangles
//===----------------------------------------------------------------------===//

/// cat(tensors, dim). Tensors without elements are omitted. Among them, those
/// of shape [0] may have a different rank than the others: torch ignores them,
/// because [0] was once the only empty shape.
static LogicalResult lowerCat(TensorLowering &op) {
  SmallVector<Value> parts;
  for (auto [tensor, dtype] :
       llvm::zip(op.tensorList(0), op.tensorListDtypes(0)))
    if (TensorTarget::typeOf(tensor).getNumElements() > 0)
      parts.push_back(op.convert(tensor, dtype, op.resultDtype()));
  if (parts.empty())
    return op.replaceWith(op.zeros(op.resultSizes(), op.resultDtype()));
  int64_t dim = op.dimension(1, op.resultSizes().size());
  return op.replaceWith(op.target.concatenate(parts, dim));
}

/// roll(self, shifts, dims): the end of each dimension moves to its front.
static LogicalResult lowerRoll(TensorLowering &op) {
  SmallVector<int64_t> shifts = op.integers(1), dims = op.integers(2);
  Value tensor = op.tensor(0);
  if (dims.empty()) {
    tensor = op.flatten(tensor);
    dims = {0};
  }
  for (auto [shift, dim] : llvm::zip(shifts, dims)) {
    dim += dim < 0 ? TensorTarget::typeOf(tensor).getRank() : 0;
    int64_t size = TensorTarget::sizesOf(tensor)[dim];
    int64_t moved = size == 0 ? 0 : ((shift % size) + size) % size;
    if (moved == 0)
      continue;
    Value head = extract(op, tensor, {dim, 0, size - moved, 1});
    Value tail = extract(op, tensor, {dim, size - moved, moved, 1});
    tensor = op.target.concatenate({tail, head}, dim);
  }
  return op.replaceWith(tensor);
}

/// constant_pad_nd(self, pad, value): `pad` lists (front, back), starting with
/// the last dimension; negative pads crop.
static LogicalResult lowerConstantPad(TensorLowering &op) {
  std::optional<double> value = op.number(2).asDouble();
  if (!value)
    return op.fail("the value isn't a constant");
  SmallVector<int64_t> pad = op.integers(1);
  int64_t rank = op.rank(0);
  SmallVector<int64_t> low(rank, 0), high(rank, 0), interior(rank, 0);
  for (size_t i = 0; i + 1 < pad.size(); i += 2) {
    int64_t dim = rank - 1 - static_cast<int64_t>(i / 2);
    low[dim] = pad[i];
    high[dim] = pad[i + 1];
  }
  return op.replaceWith(op.target.pad(op.tensor(0), low, high, interior,
                                      op.scalar(op.resultDtype(), *value)));
}

/// tril and triu: (self, diagonal)
template <bool isLower> static LogicalResult lowerTriangle(TensorLowering &op) {
  int64_t rank = op.rank(0), diagonal = op.integer(1);
  int64_t rows = op.sizes(0)[rank - 2], columns = op.sizes(0)[rank - 1];
  SmallVector<bool> kept;
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t column = 0; column < columns; ++column)
      kept.push_back(isLower ? column <= row + diagonal
                             : column >= row + diagonal);
  SmallVector<int64_t> sizes(rank, 1);
  sizes[rank - 2] = rows;
  sizes[rank - 1] = columns;
  Value zero = op.zeros(SmallVector<int64_t>(rank, 1), op.resultDtype());
  return op.replaceWith(
      op.select(op.constantBooleans(sizes, kept), op.tensor(0), zero));
}

void torch_ltc::populateDataMovementTensorLowerings(
    TensorLoweringTable &table) {
  for (StringRef name :
       {"aten.view", "aten._unsafe_view", "aten.unsqueeze", "aten.squeeze",
        "aten.squeeze.dim", "aten.squeeze.dims"})
    table.add(name, lowerReshape);
  table.add("aten.permute", lowerPermute);
  table.add("aten.transpose.int", lowerTranspose);
  table.add("aten.t", lowerTranspose);
  table.add("aten.expand", lowerExpand);
  table.add("aten.repeat", lowerRepeat);
  table.add("aten.flip", lowerFlip);
  table.add("aten.slice.Tensor", lowerSlice);
  table.add("aten.select.int", lowerSelect);
  table.add("aten.slice_scatter", lowerSliceScatter);
  table.add("aten.select_scatter", lowerSelectScatter);
  table.add("aten.slice_backward", lowerSliceBackward);
  table.add("aten.select_backward", lowerSelectBackward);
  table.add("aten.cat", lowerCat);
  table.add("aten.roll", lowerRoll);
  table.add("aten.constant_pad_nd", lowerConstantPad);
  table.add("aten.tril", lowerTriangle<true>);
  table.add("aten.triu", lowerTriangle<false>);
}
