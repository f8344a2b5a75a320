//===- Indexing.cpp - Reads at positions that a tensor contains -----------===//
//
// Positions are checked before anything is read (OpLowering::checkBounds), and
// clamped as well, for targets that drop the checks.
//
//===----------------------------------------------------------------------===//

#include "AdvancedIndex.h"

#include "torch_ltc/Dialect/Torch/TorchOps_indexing.h"

using namespace mlir;
using namespace mlir::torch_ltc;
using namespace mlir::torch_ltc::torch::ops;

static SmallVector<Value> loopIndices(OpBuilder &builder, Location loc,
                                      size_t rank) {
  SmallVector<Value> indices;
  for (size_t dim = 0; dim < rank; ++dim)
    indices.push_back(linalg::IndexOp::create(builder, loc, dim));
  return indices;
}

/// result[i][j] = self[index[i][j]][j] for dim 0.
static LogicalResult lowerGather(OpLowering &op, AtenGatherOp args) {
  Value source = op.tensor(args.getSelf());
  ArrayRef<int64_t> sizes = op.sizes(args.getSelf());
  int64_t dim = op.dimension(args.getDim(), sizes.size());
  Value index = op.checkBounds(op.tensor(args.getIndex()), 0,
                               sizes.empty() ? 1 : sizes[dim]);
  Value result = op.tensors.elementwise(
      op.resultSizes(), op.resultType().getElementType(), index,
      [&](OpBuilder &nested, Location loc, ValueRange inputs) {
        IndexBuilder b(nested, loc);
        SmallVector<Value> indices = loopIndices(nested, loc, sizes.size());
        if (!indices.empty())
          indices[dim] = b.fromElement(inputs[0], sizes[dim]);
        return SmallVector<Value>{b.extract(source, indices)};
      })[0];
  return op.replaceWith(result);
}

static LogicalResult lowerIndexSelect(OpLowering &op, AtenIndexSelectOp args) {
  Value source = op.tensor(args.getSelf());
  ArrayRef<int64_t> sizes = op.sizes(args.getSelf());
  if (sizes.empty())
    return op.replaceWith(source);
  int64_t dim = op.dimension(args.getDim(), sizes.size());
  SmallVector<int64_t> aligned(sizes.size() - dim, 1);
  aligned[0] = op.tensorType(args.getIndex()).getNumElements();
  Value index = op.tensors.reshape(
      op.checkBounds(op.tensor(args.getIndex()), 0, sizes[dim]), aligned);
  Value result = op.tensors.elementwise(
      op.resultSizes(), op.resultType().getElementType(), index,
      [&](OpBuilder &nested, Location loc, ValueRange inputs) {
        IndexBuilder b(nested, loc);
        SmallVector<Value> indices = loopIndices(nested, loc, sizes.size());
        indices[dim] = b.fromElement(inputs[0], sizes[dim]);
        return SmallVector<Value>{b.extract(source, indices)};
      })[0];
  return op.replaceWith(result);
}

static LogicalResult lowerIndex(OpLowering &op, AtenIndexTensorOp args) {
  FailureOr<AdvancedIndex> index =
      AdvancedIndex::read(op, args.getIndices(), op.sizes(args.getSelf()));
  if (failed(index))
    return failure();
  Value source = op.tensor(args.getSelf());
  Value result = op.tensors.elementwise(
      op.resultSizes(), op.resultType().getElementType(), index->getTensors(),
      [&](OpBuilder &nested, Location loc, ValueRange inputs) {
        IndexBuilder b(nested, loc);
        SmallVector<Value> position =
            loopIndices(nested, loc, op.resultSizes().size());
        return SmallVector<Value>{
            b.extract(source, index->locate(b, position, inputs))};
      })[0];
  return op.replaceWith(result);
}

/// Reads the flattened tensor at the positions `index`.
static LogicalResult lowerTake(OpLowering &op, AtenTakeOp args) {
  Value flat = op.tensors.flatten(op.tensor(args.getSelf()));
  int64_t size = op.tensorType(args.getSelf()).getNumElements();
  Value index = op.checkBounds(op.tensor(args.getIndex()), -size, size);
  Value result = op.tensors.elementwise(
      op.resultSizes(), op.resultType().getElementType(), index,
      [&](OpBuilder &nested, Location loc, ValueRange inputs) {
        IndexBuilder b(nested, loc);
        return SmallVector<Value>{
            b.extract(flat, b.fromElement(inputs[0], size))};
      })[0];
  return op.replaceWith(result);
}

void torch_ltc::populateIndexingLowerings(LoweringTable &table) {
  table.add(lowerGather);
  table.add(lowerIndexSelect);
  table.add(lowerIndex);
  table.add(lowerTake);
}
