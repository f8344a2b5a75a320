//===- Indexing.cpp - Reads at positions that a tensor contains -----------===//
//
// Most of these ops become a gather of rows. Positions out of range, which
// eager PyTorch rejects, read the nearest element, because programs in these
// dialects can't raise errors.
//
//===----------------------------------------------------------------------===//

#include "RowAccess.h"

#include "torch_ltc/Dialect/Torch/TorchOps_embedding.h"
#include "torch_ltc/Dialect/Torch/TorchOps_indexing.h"

using namespace mlir;
using namespace mlir::torch_ltc;
using namespace mlir::torch_ltc::torch::ops;

static LogicalResult lowerEmbedding(TensorLowering &op, AtenEmbeddingOp args) {
  if (failed(checkNotEmpty(op)))
    return failure();
  Value indices = args.getIndices();
  Value rows = positions(op, op.flatten(op.tensor(indices)), op.dtype(indices),
                         op.sizes(args.getWeight())[0], /*wraps=*/false);
  return op.replaceWith(gatherRows(op, op.tensor(args.getWeight()), rows));
}

/// Multiplies grad_output by a matrix [rows, lookups] that has a 1 where the
/// lookup read the row. The product sums repeated rows.
static LogicalResult lowerEmbeddingBackward(TensorLowering &op,
                                            AtenEmbeddingDenseBackwardOp args) {
  if (op.boolean(args.getScaleGradByFreq()))
    return op.fail("it divides by the number of lookups of a row");
  Type dtype = op.resultDtype(), compute = computeDtypeOf(dtype);
  int64_t rows = op.resultSizes()[0], columns = op.resultSizes()[1];
  RankedTensorType indexType = op.tensorType(args.getIndices());
  int64_t count = indexType.getNumElements();
  int64_t padding = op.integer(args.getPaddingIdx());
  if (count == 0)
    return op.replaceWith(op.zeros(op.resultSizes(), dtype));
  Type elementType = indexType.getElementType();
  Value numbers =
      op.target.reshape(op.target.iota(rows, elementType), {rows, 1});
  Value indices = op.target.reshape(op.tensor(args.getIndices()), {1, count});
  Value isLookedUp = op.compute(
      {rows, count}, {numbers, indices},
      [&](OpBuilder &nested, OpLowering &, ValueRange elements) {
        ScalarBuilder s(nested, op.loc, op.dtype(args.getIndices()));
        Value isRow = s.compare(Comparison::eq, elements[0], elements[1]);
        if (padding >= 0)
          isRow = s.logicalAnd(isRow, s.compare(Comparison::ne, elements[1],
                                                s.integer(padding)));
        return s.convert(isRow, nested.getI1Type(), compute);
      });
  Value gradient = op.target.reshape(
      op.operandAs(args.getGradOutput(), compute), {1, count, columns});
  Value product = op.target.matmul(
      op.target.reshape(isLookedUp, {1, rows, count}), gradient);
  return op.replaceWith(op.convert(product, compute, dtype));
}

static LogicalResult lowerIndexSelect(TensorLowering &op,
                                      AtenIndexSelectOp args) {
  Value self = op.tensor(args.getSelf()), index = args.getIndex();
  ArrayRef<int64_t> sizes = op.sizes(args.getSelf());
  if (sizes.empty())
    return op.replaceWith(self);
  if (failed(checkNotEmpty(op)))
    return failure();
  int64_t dim = op.dimension(args.getDim(), sizes.size());
  SmallVector<int64_t> order = firstOrder(sizes.size(), dim);
  Value rows = positions(op, op.flatten(op.tensor(index)), op.dtype(index),
                         sizes[dim], /*wraps=*/false);
  Value gathered = gatherRows(op, op.target.transpose(self, order), rows);
  return op.replaceWith(
      op.target.transpose(gathered, inversePermutation(order)));
}

/// result[i][j] = self[index[i][j]][j] for dim 0. The lowering moves `dim` to
/// the end; the other dimensions are the batch of the target's gather.
static LogicalResult lowerGather(TensorLowering &op, AtenGatherOp args) {
  if (op.rank(args.getSelf()) == 0)
    return op.replaceWith(op.tensor(args.getSelf()));
  if (failed(checkNotEmpty(op)))
    return failure();
  int64_t rank = op.rank(args.getSelf()),
          dim = op.dimension(args.getDim(), rank);
  int64_t size = op.sizes(args.getSelf())[dim];
  int64_t count = op.sizes(args.getIndex())[dim];
  SmallVector<int64_t> kept(op.sizes(args.getIndex())), zeros(rank, 0),
      ones(rank, 1);
  kept[dim] = size; // in other dimensions the index may be smaller
  SmallVector<int64_t> order = lastOrder(rank, dim);
  Value source = op.target.transpose(
      op.target.slice(op.tensor(args.getSelf()), zeros, kept, ones), order);
  Value index = op.target.transpose(positions(op, op.tensor(args.getIndex()),
                                              op.dtype(args.getIndex()), size,
                                              /*wraps=*/false),
                                    order);
  SmallVector<int64_t> sizes(TensorTarget::sizesOf(index));
  int64_t batch = op.resultType().getNumElements() / count;
  Value gathered = op.target.gather(op.target.reshape(source, {batch, size, 1}),
                                    op.target.reshape(index, {batch, count}));
  return op.replaceWith(op.target.transpose(op.target.reshape(gathered, sizes),
                                            inversePermutation(order)));
}

static LogicalResult lowerIndex(TensorLowering &op, AtenIndexTensorOp args) {
  if (failed(checkNotEmpty(op)))
    return failure();
  FailureOr<RowIndex> index =
      RowIndex::read(op, args.getSelf(), args.getIndices());
  if (failed(index))
    return failure();
  Value table = op.target.reshape(
      op.target.transpose(op.tensor(args.getSelf()), index->order),
      index->tableSizes);
  Value gathered = op.target.reshape(gatherRows(op, table, index->rows),
                                     index->gatheredSizes);
  return op.replaceWith(op.target.transpose(gathered, index->back));
}

void torch_ltc::populateIndexingTensorLowerings(TensorLoweringTable &table) {
  table.add(lowerEmbedding);
  table.add(lowerEmbeddingBackward);
  table.add(lowerIndexSelect);
  table.add(lowerGather);
  table.add(lowerIndex);
}
