//===- Strided.cpp - Data movement by constant positions ------------------===//
//
// The source of each element is known at compile time, so every op except
// upsample_nearest2d_backward is a gather with constant positions. For an op
// that writes, each element's source is the value that is written to it last.
//
//===----------------------------------------------------------------------===//

#include "RowAccess.h"

#include "../TorchToLinalg/StridedView.h"

using namespace mlir;
using namespace mlir::torch_ltc;

static Value constantPositions(TensorLowering &op, ArrayRef<int64_t> values) {
  return op.constantIntegers({static_cast<int64_t>(values.size())}, values,
                             op.target.elementTypeOf(positionDtype(op)));
}

static LogicalResult readView(TensorLowering &op, const StridedView &view) {
  if (failed(checkNotEmpty(op)))
    return failure();
  if (!view.isInBounds(op.tensorType(0).getNumElements()))
    return op.fail("it reads outside its tensor");
  Value rows = constantPositions(op, view.positions());
  return op.replaceWith(gatherRows(op, op.flatten(op.tensor(0)), rows));
}

/// Replaces the op by `tensor`, in which the elements of `source` replace those
/// at the view's positions. If a position is repeated, the last element wins.
static LogicalResult writeView(TensorLowering &op, Value source, Value tensor,
                               const StridedView &view) {
  if (failed(checkNotEmpty(op)))
    return failure();
  int64_t size = TensorTarget::typeOf(tensor).getNumElements();
  if (!view.isInBounds(size))
    return op.fail("it writes outside its tensor");
  SmallVector<int64_t> sources(size, 0);
  SmallVector<bool> isWritten(size, false);
  for (auto [number, position] : llvm::enumerate(view.positions())) {
    sources[position] = number;
    isWritten[position] = true;
  }
  Value written =
      gatherRows(op, op.flatten(source), constantPositions(op, sources));
  return op.replaceWith(op.select(op.constantBooleans({size}, isWritten),
                                  written, op.flatten(tensor)));
}

static LogicalResult lowerAsStrided(TensorLowering &op) {
  return readView(op, readStrides(op, 1));
}

/// as_strided_scatter(self, src, size, stride, storage_offset)
static LogicalResult lowerAsStridedScatter(TensorLowering &op) {
  return writeView(op, op.tensor(1), op.tensor(0), readStrides(op, 2));
}

static LogicalResult lowerDiagonal(TensorLowering &op) {
  return readView(op, readDiagonal(op, op.sizes(0), 1));
}

/// diagonal_scatter(self, src, offset, dim1, dim2)
static LogicalResult lowerDiagonalScatter(TensorLowering &op) {
  return writeView(op, op.tensor(1), op.tensor(0),
                   readDiagonal(op, op.sizes(0), 2));
}

/// diagonal_backward(grad_output, input_sizes, offset, dim1, dim2)
static LogicalResult lowerDiagonalBackward(TensorLowering &op) {
  return writeView(op, op.tensor(0),
                   op.zeros(op.resultSizes(), op.resultDtype()),
                   readDiagonal(op, op.resultSizes(), 2));
}

static LogicalResult lowerUnfold(TensorLowering &op) {
  return readView(op, readWindows(op, op.sizes(0), 1));
}

//===----------------------------------------------------------------------===//
// upsample_nearest2d: images [n, c, h, w]
//===----------------------------------------------------------------------===//

/// Resamples the rows, and then the columns. `along(tensor, sources, size)`
/// resamples the first dimension of a tensor [n, rest] to `size` rows.
static LogicalResult
resample(TensorLowering &op, unsigned firstScale, ArrayRef<int64_t> in,
         ArrayRef<int64_t> out, ArrayRef<int64_t> from,
         function_ref<Value(Value, ArrayRef<int64_t>, int64_t)> along) {
  if (failed(checkNotEmpty(op)))
    return failure();
  Value result = op.tensor(0);
  SmallVector<int64_t> sizes(from);
  for (int64_t dim : {2, 3}) {
    SmallVector<int64_t> sources = nearestSources(
        in[dim], out[dim], op.optionalFloating(firstScale + dim - 2));
    SmallVector<int64_t> order = firstOrder(4, dim), moved;
    for (int64_t original : order)
      moved.push_back(sizes[original]);
    int64_t rest = llvm::product_of(ArrayRef(moved).drop_front());
    Value rows =
        op.target.reshape(op.target.transpose(result, order), {moved[0], rest});
    sizes[dim] = moved[0] = op.resultSizes()[dim];
    rows = op.target.reshape(along(rows, sources, moved[0]), moved);
    result = op.target.transpose(rows, inversePermutation(order));
  }
  return op.replaceWith(result);
}

static LogicalResult lowerUpsampleNearest(TensorLowering &op) {
  return resample(op, 2, op.sizes(0), op.resultSizes(), op.sizes(0),
                  [&](Value rows, ArrayRef<int64_t> sources, int64_t) {
                    return gatherRows(op, rows, constantPositions(op, sources));
                  });
}

/// upsample_nearest2d_backward(grad_output, output_size, input_size, scales)
static LogicalResult lowerUpsampleNearestBackward(TensorLowering &op) {
  Type dtype = op.resultDtype();
  return resample(
      op, 3, op.resultSizes(), op.sizes(0), op.sizes(0),
      [&](Value rows, ArrayRef<int64_t> sources, int64_t size) {
        ArrayRef<int64_t> given = TensorTarget::sizesOf(rows);
        Value positions =
            op.target.reshape(constantPositions(op, sources), {1, given[0]});
        return writeRows(op, op.zeros({1, size, given[1]}, dtype), positions,
                         op.target.reshape(rows, {1, given[0], given[1]}),
                         dtype, /*accumulate=*/true);
      });
}

void torch_ltc::populateStridedTensorLowerings(TensorLoweringTable &table) {
  table.add("aten.as_strided", lowerAsStrided);
  table.add("aten.as_strided_scatter", lowerAsStridedScatter);
  table.add("aten.diagonal", lowerDiagonal);
  table.add("aten.diagonal_scatter", lowerDiagonalScatter);
  table.add("aten.diagonal_backward", lowerDiagonalBackward);
  table.add("aten.unfold", lowerUnfold);
  table.add("aten.upsample_nearest2d", lowerUpsampleNearest);
  table.add("aten.upsample_nearest2d_backward", lowerUpsampleNearestBackward);
}
