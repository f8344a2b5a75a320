//===- Indexing.cpp - Reads at positions that a tensor contains -----------===//
//
// Positions are checked before anything is read (OpLowering::checkBounds), and
// clamped as well, for targets that drop the checks.
//
//===----------------------------------------------------------------------===//

#include "AdvancedIndex.h"

using namespace mlir;
using namespace mlir::torch_ltc;

static SmallVector<Value> loopIndices(OpBuilder &builder, Location loc,
                                      size_t rank) {
  SmallVector<Value> indices;
  for (size_t dim = 0; dim < rank; ++dim)
    indices.push_back(linalg::IndexOp::create(builder, loc, dim));
  return indices;
}

/// gather(self, dim, index, sparse_grad): result[i][j] = self[index[i][j]][j]
/// for dim 0.
static LogicalResult lowerGather(OpLowering &op) {
  Value source = op.tensor(0);
  int64_t dim = op.dimension(1, op.rank(0));
  ArrayRef<int64_t> sizes = op.sizes(0);
  Value index = op.checkBounds(op.tensor(2), 0, sizes.empty() ? 1 : sizes[dim]);
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

/// index_select(self, dim, index)
static LogicalResult lowerIndexSelect(OpLowering &op) {
  if (op.rank(0) == 0)
    return op.replaceWith(op.tensor(0));
  Value source = op.tensor(0);
  int64_t dim = op.dimension(1, op.rank(0));
  ArrayRef<int64_t> sizes = op.sizes(0);
  SmallVector<int64_t> aligned(op.rank(0) - dim, 1);
  aligned[0] = op.tensorType(2).getNumElements();
  Value index =
      op.tensors.reshape(op.checkBounds(op.tensor(2), 0, sizes[dim]), aligned);
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

/// index.Tensor(self, indices)
static LogicalResult lowerIndex(OpLowering &op) {
  FailureOr<AdvancedIndex> index = AdvancedIndex::read(op, op.sizes(0));
  if (failed(index))
    return failure();
  Value source = op.tensor(0);
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

/// take(self, index): reads the flattened tensor at the positions `index`.
static LogicalResult lowerTake(OpLowering &op) {
  Value flat = op.tensors.flatten(op.tensor(0));
  int64_t size = op.tensorType(0).getNumElements();
  Value index = op.checkBounds(op.tensor(1), -size, size);
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
  table.add("aten.gather", lowerGather);
  table.add("aten.index_select", lowerIndexSelect);
  table.add("aten.index.Tensor", lowerIndex);
  table.add("aten.take", lowerTake);
}
