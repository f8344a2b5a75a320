//===- Strided.cpp - Data movement by constant positions ------------------===//
//
// The source of each element is known at compile time, so every op except
// upsample_nearest2d_backward is a gather with constant positions. For an op
// that writes, each element's source is the value that is written to it last.
//
//===----------------------------------------------------------------------===//

#include "RowAccess.h"

#include "../TorchToLinalg/StridedView.h"

#include "torch_ltc/Dialect/Torch/TorchOps_data_movement.h"
#include "torch_ltc/Dialect/Torch/TorchOps_pooling.h"

using namespace mlir;
using namespace mlir::torch_ltc;
using namespace mlir::torch_ltc::torch::ops;

static Value constantPositions(TensorLowering &op, ArrayRef<int64_t> values) {
  return op.constantIntegers({static_cast<int64_t>(values.size())}, values,
                             op.target.elementTypeOf(positionDtype(op)));
}

static LogicalResult readView(TensorLowering &op, Value self,
                              const StridedView &view) {
  if (failed(checkNotEmpty(op)))
    return failure();
  if (!view.isInBounds(op.tensorType(self).getNumElements()))
    return op.fail("it reads outside its tensor");
  Value rows = constantPositions(op, view.positions());
  return op.replaceWith(gatherRows(op, op.flatten(op.tensor(self)), rows));
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

static LogicalResult lowerAsStrided(TensorLowering &op, AtenAsStridedOp args) {
  return readView(op, args.getSelf(), readStrides(op, args));
}

static LogicalResult lowerAsStridedScatter(TensorLowering &op,
                                           AtenAsStridedScatterOp args) {
  return writeView(op, op.tensor(args.getSrc()), op.tensor(args.getSelf()),
                   readStrides(op, args));
}

static LogicalResult lowerDiagonal(TensorLowering &op, AtenDiagonalOp args) {
  return readView(op, args.getSelf(),
                  readDiagonal(op, args, op.sizes(args.getSelf())));
}

static LogicalResult lowerDiagonalScatter(TensorLowering &op,
                                          AtenDiagonalScatterOp args) {
  return writeView(op, op.tensor(args.getSrc()), op.tensor(args.getSelf()),
                   readDiagonal(op, args, op.sizes(args.getSelf())));
}

static LogicalResult lowerDiagonalBackward(TensorLowering &op,
                                           AtenDiagonalBackwardOp args) {
  return writeView(op, op.tensor(args.getGradOutput()),
                   op.zeros(op.resultSizes(), op.resultDtype()),
                   readDiagonal(op, args, op.resultSizes()));
}

static LogicalResult lowerUnfold(TensorLowering &op, AtenUnfoldOp args) {
  ArrayRef<int64_t> sizes = op.sizes(args.getSelf());
  int64_t dim = op.dimension(args.getDimension(), sizes.size());
  return readView(op, args.getSelf(),
                  windowsOf(sizes, dim, op.integer(args.getSize()),
                            op.integer(args.getStep())));
}

//===----------------------------------------------------------------------===//
// upsample_nearest2d: images [n, c, h, w]
//===----------------------------------------------------------------------===//

/// Resamples the rows and then the columns of `images`, an argument of the op,
/// between the sizes `in` and `out` of the forward op. `along(tensor, sources,
/// size)` resamples the first dimension of a tensor [n, rest] to `size` rows.
template <typename OpTy>
static LogicalResult
resample(TensorLowering &op, OpTy args, Value images, ArrayRef<int64_t> in,
         ArrayRef<int64_t> out,
         function_ref<Value(Value, ArrayRef<int64_t>, int64_t)> along) {
  if (failed(checkNotEmpty(op)))
    return failure();
  Value result = op.tensor(images);
  SmallVector<int64_t> sizes(op.sizes(images));
  std::pair<int64_t, Value> scaled[] = {{2, args.getScalesH()},
                                        {3, args.getScalesW()}};
  for (auto [dim, scale] : scaled) {
    SmallVector<int64_t> sources =
        nearestSources(in[dim], out[dim], op.optionalFloating(scale));
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

static LogicalResult lowerUpsampleNearest(TensorLowering &op,
                                          AtenUpsampleNearest2dOp args) {
  Value self = args.getSelf();
  return resample(op, args, self, op.sizes(self), op.resultSizes(),
                  [&](Value rows, ArrayRef<int64_t> sources, int64_t) {
                    return gatherRows(op, rows, constantPositions(op, sources));
                  });
}

static LogicalResult
lowerUpsampleNearestBackward(TensorLowering &op,
                             AtenUpsampleNearest2dBackwardOp args) {
  Type dtype = op.resultDtype();
  Value gradient = args.getGradOutput();
  return resample(
      op, args, gradient, op.resultSizes(), op.sizes(gradient),
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
  table.add(lowerAsStrided, torch::DynamicScalars::None);
  table.add(lowerAsStridedScatter, torch::DynamicScalars::None);
  table.add(lowerDiagonal, torch::DynamicScalars::None);
  table.add(lowerDiagonalScatter, torch::DynamicScalars::None);
  table.add(lowerDiagonalBackward, torch::DynamicScalars::None);
  table.add(lowerUnfold);
  table.add(lowerUpsampleNearest, torch::DynamicScalars::None);
  table.add(lowerUpsampleNearestBackward, torch::DynamicScalars::None);
}
