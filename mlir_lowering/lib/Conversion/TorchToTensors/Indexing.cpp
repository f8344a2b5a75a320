//===- Indexing.cpp - Reads at positions that a tensor contains -----------===//
//
// Most of these ops become a gather of rows. Positions out of range, which
// eager PyTorch rejects, read the nearest element, because programs in these
// dialects can't raise errors.
//
//===----------------------------------------------------------------------===//

#include "RowAccess.h"

using namespace mlir;
using namespace mlir::torch_ltc;

/// embedding(weight, indices, padding_idx, scale_grad_by_freq, sparse)
static LogicalResult lowerEmbedding(TensorLowering &op) {
  if (failed(checkNotEmpty(op)))
    return failure();
  Value rows = positions(op, op.flatten(op.tensor(1)), op.dtype(1),
                         op.sizes(0)[0], /*wraps=*/false);
  return op.replaceWith(gatherRows(op, op.tensor(0), rows));
}

/// embedding_dense_backward(grad_output, indices, num_weights, padding_idx,
/// scale_grad_by_freq): multiplies grad_output by a matrix [rows, lookups] that
/// has a 1 where the lookup read the row. The product sums repeated rows.
static LogicalResult lowerEmbeddingBackward(TensorLowering &op) {
  if (op.boolean(4))
    return op.fail("it divides by the number of lookups of a row");
  Type dtype = op.resultDtype(), compute = computeDtypeOf(dtype);
  int64_t rows = op.resultSizes()[0], columns = op.resultSizes()[1];
  int64_t count = op.tensorType(1).getNumElements(), padding = op.integer(3);
  if (count == 0)
    return op.replaceWith(op.zeros(op.resultSizes(), dtype));
  Type elementType = TensorTarget::typeOf(op.tensor(1)).getElementType();
  Value numbers =
      op.target.reshape(op.target.iota(rows, elementType), {rows, 1});
  Value indices = op.target.reshape(op.tensor(1), {1, count});
  Value isLookedUp = op.compute(
      {rows, count}, {numbers, indices},
      [&](OpBuilder &nested, OpLowering &, ValueRange elements) {
        ScalarBuilder s(nested, op.loc, op.dtype(1));
        Value isRow = s.compare(Comparison::eq, elements[0], elements[1]);
        if (padding >= 0)
          isRow = s.logicalAnd(isRow, s.compare(Comparison::ne, elements[1],
                                                s.integer(padding)));
        return s.convert(isRow, nested.getI1Type(), compute);
      });
  Value gradient =
      op.target.reshape(op.operandAs(0, compute), {1, count, columns});
  Value product = op.target.matmul(
      op.target.reshape(isLookedUp, {1, rows, count}), gradient);
  return op.replaceWith(op.convert(product, compute, dtype));
}

/// index_select(self, dim, index)
static LogicalResult lowerIndexSelect(TensorLowering &op) {
  if (op.rank(0) == 0)
    return op.replaceWith(op.tensor(0));
  if (failed(checkNotEmpty(op)))
    return failure();
  int64_t dim = op.dimension(1, op.rank(0));
  SmallVector<int64_t> order = firstOrder(op.rank(0), dim);
  Value rows = positions(op, op.flatten(op.tensor(2)), op.dtype(2),
                         op.sizes(0)[dim], /*wraps=*/false);
  Value gathered =
      gatherRows(op, op.target.transpose(op.tensor(0), order), rows);
  return op.replaceWith(
      op.target.transpose(gathered, inversePermutation(order)));
}

/// gather(self, dim, index, sparse_grad): result[i][j] = self[index[i][j]][j]
/// for dim 0. The lowering moves `dim` to the end; the other dimensions are the
/// batch of the target's gather.
static LogicalResult lowerGather(TensorLowering &op) {
  if (op.rank(0) == 0)
    return op.replaceWith(op.tensor(0));
  if (failed(checkNotEmpty(op)))
    return failure();
  int64_t rank = op.rank(0), dim = op.dimension(1, rank);
  int64_t size = op.sizes(0)[dim], count = op.sizes(2)[dim];
  SmallVector<int64_t> kept(op.sizes(2)), zeros(rank, 0), ones(rank, 1);
  kept[dim] = size; // in other dimensions the index may be smaller
  SmallVector<int64_t> order = lastOrder(rank, dim);
  Value source = op.target.transpose(
      op.target.slice(op.tensor(0), zeros, kept, ones), order);
  Value index = op.target.transpose(
      positions(op, op.tensor(2), op.dtype(2), size, /*wraps=*/false), order);
  SmallVector<int64_t> sizes(TensorTarget::sizesOf(index));
  int64_t batch = op.resultType().getNumElements() / count;
  Value gathered = op.target.gather(op.target.reshape(source, {batch, size, 1}),
                                    op.target.reshape(index, {batch, count}));
  return op.replaceWith(op.target.transpose(op.target.reshape(gathered, sizes),
                                            inversePermutation(order)));
}

/// index.Tensor(self, indices)
static LogicalResult lowerIndex(TensorLowering &op) {
  if (failed(checkNotEmpty(op)))
    return failure();
  FailureOr<RowIndex> index = RowIndex::read(op);
  if (failed(index))
    return failure();
  Value table = op.target.reshape(
      op.target.transpose(op.tensor(0), index->order), index->tableSizes);
  Value gathered = op.target.reshape(gatherRows(op, table, index->rows),
                                     index->gatheredSizes);
  return op.replaceWith(op.target.transpose(gathered, index->back));
}

void torch_ltc::populateIndexingTensorLowerings(TensorLoweringTable &table) {
  table.add("aten.embedding", lowerEmbedding);
  table.add("aten.embedding_dense_backward", lowerEmbeddingBackward);
  table.add("aten.index_select", lowerIndexSelect);
  table.add("aten.gather", lowerGather);
  table.add("aten.index.Tensor", lowerIndex);
}
