//===- Slices.cpp - Parts of a tensor along one dimension -----------------===//
//
// A start or an index is a constant or a dynamic scalar. The part's sizes are
// always constants: they are those of one of the op's tensors.
//
//===----------------------------------------------------------------------===//

#include "IndexBuilder.h"
#include "OpArguments.h"

#include "torch_ltc/Dialect/Ltc/SizeOrder.h"
#include "torch_ltc/Dialect/Torch/TorchOps_data_movement.h"

using namespace mlir;
using namespace mlir::torch_ltc;
using namespace mlir::torch_ltc::torch::ops;

namespace {
struct Slice {
  SmallVector<OpFoldResult> offsets;
  SmallVector<int64_t> sizes, strides;
};
} // namespace

/// The start of a part that spans `span` of `size` positions. A dynamic scalar
/// is clamped, so that no memory outside the tensor is accessed. `hasStep`: the
/// part's elements aren't consecutive.
static OpFoldResult readStart(OpLowering &op, Value argument, int64_t size,
                              int64_t span, bool hasStep = false) {
  if (!op.isParameter(argument))
    return op.builder.getIndexAttr(
        clampIndex(op.optionalInteger(argument), 0, size));
  IndexBuilder b(op.builder, op.loc);
  Value number = op.number(argument).value;
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

/// The slice of the sizes `partSizes` of a tensor of the sizes `sizes`.
template <typename OpTy>
static Slice readSlice(OpLowering &op, OpTy args, ArrayRef<int64_t> sizes,
                       ArrayRef<int64_t> partSizes) {
  Slice slice = wholeOf(op, sizes);
  if (partSizes.size() != sizes.size()) {
    op.contradict();
    return slice;
  }
  Value givenStart = args.getStart(), givenEnd = args.getEnd();
  int64_t dim = op.dimension(args.getDim(), sizes.size());
  int64_t size = sizes[dim], step = op.integer(args.getStep());
  int64_t count = partSizes[dim];
  if (!op.isParameter(givenStart) && !op.isParameter(givenEnd)) {
    int64_t start = clampIndex(op.optionalInteger(givenStart), 0, size);
    int64_t end = clampIndex(op.optionalInteger(givenEnd), size, size);
    count = end > start ? (end - start + step - 1) / step : 0;
  }
  int64_t span = count > 0 ? (count - 1) * step + 1 : 0;
  if (span > size)
    op.contradict();
  slice.offsets[dim] = readStart(op, givenStart, size, span, step != 1);
  slice.strides[dim] = step;
  slice.sizes[dim] = count;
  return slice;
}

/// The selected part of a tensor of the sizes `sizes`, as a slice of size 1.
template <typename OpTy>
static Slice readSelection(OpLowering &op, OpTy args, ArrayRef<int64_t> sizes) {
  Slice slice = wholeOf(op, sizes);
  int64_t dim = op.dimension(args.getDim(), sizes.size());
  slice.offsets[dim] = readStart(op, args.getIndex(), sizes[dim], /*span=*/1);
  slice.sizes[dim] = 1;
  return slice;
}

static LogicalResult extract(OpLowering &op, Value self, const Slice &slice) {
  return op.replaceWith(op.tensors.slice(op.tensor(self), slice.offsets,
                                         slice.sizes, slice.strides));
}

static LogicalResult insert(OpLowering &op, Value source, Value tensor,
                            const Slice &slice) {
  source = op.tensors.reshape(source, slice.sizes);
  return op.replaceWith(
      op.tensors.insert(source, tensor, slice.offsets, slice.strides));
}

static LogicalResult lowerSlice(OpLowering &op, AtenSliceTensorOp args) {
  Value self = args.getSelf();
  return extract(op, self,
                 readSlice(op, args, op.sizes(self), op.resultSizes()));
}

static LogicalResult lowerSelect(OpLowering &op, AtenSelectIntOp args) {
  Value self = args.getSelf();
  return extract(op, self, readSelection(op, args, op.sizes(self)));
}

/// Inserts the argument src, converted to the dtype of self.
template <typename OpTy>
static LogicalResult insertSource(OpLowering &op, OpTy args,
                                  const Slice &slice) {
  Value self = args.getSelf(), src = args.getSrc();
  Value source =
      op.tensors.convert(op.tensor(src), op.dtype(src), op.dtype(self));
  return insert(op, source, op.tensor(self), slice);
}

static LogicalResult lowerSliceScatter(OpLowering &op,
                                       AtenSliceScatterOp args) {
  return insertSource(
      op, args,
      readSlice(op, args, op.sizes(args.getSelf()), op.sizes(args.getSrc())));
}

static LogicalResult lowerSelectScatter(OpLowering &op,
                                        AtenSelectScatterOp args) {
  return insertSource(op, args,
                      readSelection(op, args, op.sizes(args.getSelf())));
}

static LogicalResult lowerSliceBackward(OpLowering &op,
                                        AtenSliceBackwardOp args) {
  Value gradient = args.getGradOutput();
  Value zeros = op.tensors.zeros(op.resultSizes(), op.resultDtype());
  return insert(op, op.tensor(gradient), zeros,
                readSlice(op, args, op.resultSizes(), op.sizes(gradient)));
}

static LogicalResult lowerSelectBackward(OpLowering &op,
                                         AtenSelectBackwardOp args) {
  Value zeros = op.tensors.zeros(op.resultSizes(), op.resultDtype());
  return insert(op, op.tensor(args.getGradOutput()), zeros,
                readSelection(op, args, op.resultSizes()));
}

void torch_ltc::populateSliceLowerings(LoweringTable &table) {
  table.add(lowerSlice);
  table.add(lowerSelect);
  table.add(lowerSliceScatter);
  table.add(lowerSelectScatter);
  table.add(lowerSliceBackward);
  table.add(lowerSelectBackward);
}
