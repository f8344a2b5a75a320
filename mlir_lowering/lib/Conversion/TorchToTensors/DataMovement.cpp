//===- DataMovement.cpp - Views, slices, concatenations, pads on tensors --===//

#include "TensorLowering.h"

#include "../TorchToLinalg/OpArguments.h"

#include "torch_ltc/Dialect/Torch/TorchOps_data_movement.h"

using namespace mlir;
using namespace mlir::torch_ltc;
using namespace mlir::torch_ltc::torch::ops;

//===----------------------------------------------------------------------===//
// Reshapes and permutations
//===----------------------------------------------------------------------===//

/// permute, transpose.int and t
template <typename OpTy>
static LogicalResult lowerPermutation(TensorLowering &op, OpTy args) {
  return op.replaceWith(
      op.target.transpose(op.tensor(args.getSelf()), permutationOf(op)));
}

static LogicalResult lowerExpand(TensorLowering &op, AtenExpandOp args) {
  return op.replaceWith(
      op.target.broadcast(op.tensor(args.getSelf()), op.resultSizes()));
}

static LogicalResult lowerRepeat(TensorLowering &op, AtenRepeatOp args) {
  RepeatedSizes sizes(op, args);
  Value input = op.target.reshape(op.tensor(args.getSelf()), sizes.split);
  return op.replaceWith(op.target.broadcast(input, sizes.repeated));
}

static LogicalResult lowerFlip(TensorLowering &op, AtenFlipOp args) {
  if (op.isEmptyList(args.getDims()) || op.rank(args.getSelf()) == 0)
    return op.replaceWith(op.tensor(args.getSelf()));
  return op.replaceWith(op.target.reverse(
      op.tensor(args.getSelf()),
      op.dimensions(args.getDims(), op.rank(args.getSelf()))));
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

/// The slice of a tensor of the sizes `sizes`.
template <typename OpTy>
static Slice readSlice(TensorLowering &op, OpTy args, ArrayRef<int64_t> sizes) {
  int64_t dim = op.dimension(args.getDim(), sizes.size()), size = sizes[dim];
  int64_t start = clampIndex(op.optionalInteger(args.getStart()), 0, size);
  int64_t end = clampIndex(op.optionalInteger(args.getEnd()), size, size);
  int64_t step = op.integer(args.getStep());
  return {dim, start, end > start ? (end - start + step - 1) / step : 0, step};
}

/// The selected part of a tensor of the sizes `sizes`, as a slice of size 1.
template <typename OpTy>
static Slice readSelection(TensorLowering &op, OpTy args,
                           ArrayRef<int64_t> sizes) {
  int64_t dim = op.dimension(args.getDim(), sizes.size());
  int64_t index = op.integer(args.getIndex());
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

static LogicalResult lowerSlice(TensorLowering &op, AtenSliceTensorOp args) {
  return op.replaceWith(extract(op, op.tensor(args.getSelf()),
                                readSlice(op, args, op.sizes(args.getSelf()))));
}

static LogicalResult lowerSelect(TensorLowering &op, AtenSelectIntOp args) {
  return op.replaceWith(
      extract(op, op.tensor(args.getSelf()),
              readSelection(op, args, op.sizes(args.getSelf()))));
}

static LogicalResult lowerSliceScatter(TensorLowering &op,
                                       AtenSliceScatterOp args) {
  return insert(op, op.operandAs(args.getSrc(), op.resultDtype()),
                op.tensor(args.getSelf()),
                readSlice(op, args, op.sizes(args.getSelf())));
}

static LogicalResult lowerSelectScatter(TensorLowering &op,
                                        AtenSelectScatterOp args) {
  return insert(op, op.operandAs(args.getSrc(), op.resultDtype()),
                op.tensor(args.getSelf()),
                readSelection(op, args, op.sizes(args.getSelf())));
}

static LogicalResult lowerSliceBackward(TensorLowering &op,
                                        AtenSliceBackwardOp args) {
  return op.replaceWith(spread(op, op.tensor(args.getGradOutput()),
                               readSlice(op, args, op.resultSizes()),
                               op.resultSizes(), op.resultDtype()));
}

static LogicalResult lowerSelectBackward(TensorLowering &op,
                                         AtenSelectBackwardOp args) {
  return op.replaceWith(spread(op, op.tensor(args.getGradOutput()),
                               readSelection(op, args, op.resultSizes()),
                               op.resultSizes(), op.resultDtype()));
}

//===----------------------------------------------------------------------===//
// Concatenation, pads and triangles
//===----------------------------------------------------------------------===//

/// Tensors without elements are omitted. Among them, those of shape [0] may
/// have a different rank than the others: torch ignores them, because [0] was
/// once the only empty shape.
static LogicalResult lowerCat(TensorLowering &op, AtenCatOp args) {
  SmallVector<Value> parts;
  for (auto [tensor, dtype] : llvm::zip(op.tensorList(args.getTensors()),
                                        op.tensorListDtypes(args.getTensors())))
    if (TensorTarget::typeOf(tensor).getNumElements() > 0)
      parts.push_back(op.convert(tensor, dtype, op.resultDtype()));
  if (parts.empty())
    return op.replaceWith(op.zeros(op.resultSizes(), op.resultDtype()));
  int64_t dim = op.dimension(args.getDim(), op.resultSizes().size());
  return op.replaceWith(op.target.concatenate(parts, dim));
}

/// The end of each dimension moves to its front. The dims of an empty tensor
/// may be out of range, because torch doesn't check them.
static LogicalResult lowerRoll(TensorLowering &op, AtenRollOp args) {
  SmallVector<int64_t> shifts = op.integers(args.getShifts());
  SmallVector<int64_t> dims = op.integers(args.getDims());
  Value tensor = op.tensor(args.getSelf());
  if (llvm::is_contained(op.resultSizes(), 0))
    return op.replaceWith(tensor);
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

/// `pad` lists (front, back), starting with the last dimension; negative pads
/// crop.
static LogicalResult lowerConstantPad(TensorLowering &op,
                                      AtenConstantPadNdOp args) {
  double value = op.floating(args.getValue());
  SmallVector<int64_t> pad = op.integers(args.getPad());
  int64_t rank = op.rank(args.getSelf());
  SmallVector<int64_t> low(rank, 0), high(rank, 0), interior(rank, 0);
  for (size_t i = 0; i + 1 < pad.size(); i += 2) {
    int64_t dim = rank - 1 - static_cast<int64_t>(i / 2);
    low[dim] = pad[i];
    high[dim] = pad[i + 1];
  }
  return op.replaceWith(op.target.pad(op.tensor(args.getSelf()), low, high,
                                      interior,
                                      op.scalar(op.resultDtype(), value)));
}

/// tril and triu
template <bool isLower, typename OpTy>
static LogicalResult lowerTriangle(TensorLowering &op, OpTy args) {
  int64_t rank = op.rank(args.getSelf());
  int64_t diagonal = op.integer(args.getDiagonal());
  int64_t rows = op.sizes(args.getSelf())[rank - 2];
  int64_t columns = op.sizes(args.getSelf())[rank - 1];
  SmallVector<bool> kept;
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t column = 0; column < columns; ++column)
      kept.push_back(isLower ? column <= row + diagonal
                             : column >= row + diagonal);
  SmallVector<int64_t> sizes(rank, 1);
  sizes[rank - 2] = rows;
  sizes[rank - 1] = columns;
  Value zero = op.zeros(SmallVector<int64_t>(rank, 1), op.resultDtype());
  return op.replaceWith(op.select(op.constantBooleans(sizes, kept),
                                  op.tensor(args.getSelf()), zero));
}

void torch_ltc::populateDataMovementTensorLowerings(
    TensorLoweringTable &table) {
  addReshapes(table);
  table.add(lowerPermutation<AtenPermuteOp>);
  table.add(lowerPermutation<AtenTransposeIntOp>);
  table.add(lowerPermutation<AtenTOp>);
  table.add(lowerExpand);
  table.add(lowerRepeat);
  table.add(lowerFlip);
  table.add(lowerSlice, torch::DynamicScalars::None);
  table.add(lowerSelect, torch::DynamicScalars::None);
  table.add(lowerSliceScatter, torch::DynamicScalars::None);
  table.add(lowerSelectScatter, torch::DynamicScalars::None);
  table.add(lowerSliceBackward, torch::DynamicScalars::None);
  table.add(lowerSelectBackward, torch::DynamicScalars::None);
  table.add(lowerCat);
  table.add(lowerRoll, torch::DynamicScalars::None);
  table.add(lowerConstantPad, torch::DynamicScalars::None);
  table.add(lowerTriangle<true, AtenTrilOp>, torch::DynamicScalars::None);
  table.add(lowerTriangle<false, AtenTriuOp>, torch::DynamicScalars::None);
}
