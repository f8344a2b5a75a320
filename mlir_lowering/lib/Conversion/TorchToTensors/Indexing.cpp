//===- Indexing.cpp - Reads at positions that a tensor holds --------------===//
//
// All are a gather of rows. Positions out of range, which eager PyTorch
// refuses, read the nearest element: these dialects have no errors.
//
//===----------------------------------------------------------------------===//

#include "TensorLowering.h"

using namespace mlir;
using namespace mlir::torch_ltc;

/// Positions below `size` as si32, of any sizes; negative ones count from the
/// end if `wraps`.
static Value positions(TensorLowering &op, Value indices, Type dtype,
                       int64_t size, bool wraps) {
  Type i32 = IntegerType::get(op.builder.getContext(), 32, IntegerType::Signed);
  return op.compute(
      TensorTarget::sizesOf(indices), indices,
      [&](OpBuilder &nested, OpLowering &, ValueRange elements) {
        ScalarBuilder s(nested, op.loc, dtype);
        Value index = elements[0];
        ScalarBuilder d(nested, op.loc, i32);
        index = d.convert(index, dtype, i32);
        if (wraps)
          index = d.select(d.compare(Comparison::lt, index, d.integer(0)),
                           d.add(index, d.integer(size)), index);
        return d.minimum(d.maximum(index, d.integer(0)), d.integer(size - 1));
      });
}

/// [k, ...] at flat positions [w] -> [w, ...]
static Value gatherRows(TensorLowering &op, Value table, Value rows) {
  SmallVector<int64_t> sizes(TensorTarget::sizesOf(table));
  int64_t count = TensorTarget::sizesOf(rows)[0];
  int64_t width = TensorTarget::typeOf(table).getNumElements() /
                  std::max<int64_t>(sizes[0], 1);
  Value values = op.target.reshape(table, {1, sizes[0], width});
  Value gathered =
      op.target.gather(values, op.target.reshape(rows, {1, count}));
  sizes[0] = count;
  return op.target.reshape(gathered, sizes);
}

static LogicalResult checkNotEmpty(TensorLowering &op) {
  if (op.tensorType(0).getNumElements() == 0 ||
      op.resultType().getNumElements() == 0)
    return op.fail("a tensor has no elements");
  return success();
}

/// embedding(weight, indices, padding_idx, scale_grad_by_freq, sparse)
static LogicalResult lowerEmbedding(TensorLowering &op) {
  if (failed(checkNotEmpty(op)))
    return failure();
  Value rows = positions(op, op.flatten(op.tensor(1)), op.dtype(1),
                         op.sizes(0)[0], /*wraps=*/false);
  return op.replaceWith(gatherRows(op, op.tensor(0), rows));
}

/// embedding_dense_backward(grad_output, indices, num_weights, padding_idx,
/// scale_grad_by_freq): a product with the matrix that has a 1 where a row of
/// the table was looked up. Sums, where rows repeat, are the product's.
static LogicalResult lowerEmbeddingBackward(TensorLowering &op) {
  if (op.boolean(4))
    return op.fail("it divides by how often a row was looked up");
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

/// Dimension `dim` first, the others in order.
static SmallVector<int64_t> firstOrder(int64_t rank, int64_t dim) {
  SmallVector<int64_t> order{dim};
  for (int64_t i = 0; i < rank; ++i)
    if (i != dim)
      order.push_back(i);
  return order;
}

static SmallVector<int64_t> inverse(ArrayRef<int64_t> order) {
  SmallVector<int64_t> result(order.size());
  for (auto [place, dim] : llvm::enumerate(order))
    result[dim] = place;
  return result;
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
  return op.replaceWith(op.target.transpose(gathered, inverse(order)));
}

/// gather(self, dim, index, sparse_grad): result[i][j] = self[index[i][j]][j].
/// The dimension comes last; the others are the batch of the target's gather.
static LogicalResult lowerGather(TensorLowering &op) {
  if (op.rank(0) == 0)
    return op.replaceWith(op.tensor(0));
  if (failed(checkNotEmpty(op)))
    return failure();
  int64_t rank = op.rank(0), dim = op.dimension(1, rank);
  int64_t size = op.sizes(0)[dim], count = op.sizes(2)[dim];
  SmallVector<int64_t> kept(op.sizes(2)), zeros(rank, 0), ones(rank, 1);
  kept[dim] = size; // of other dimensions the index may have less
  auto order = llvm::to_vector(llvm::seq<int64_t>(0, rank));
  order.erase(order.begin() + dim);
  order.push_back(dim);
  Value source = op.target.transpose(
      op.target.slice(op.tensor(0), zeros, kept, ones), order);
  Value index = op.target.transpose(
      positions(op, op.tensor(2), op.dtype(2), size, /*wraps=*/false), order);
  SmallVector<int64_t> sizes(TensorTarget::sizesOf(index));
  int64_t batch = op.resultType().getNumElements() / count;
  Value gathered = op.target.gather(op.target.reshape(source, {batch, size, 1}),
                                    op.target.reshape(index, {batch, count}));
  return op.replaceWith(
      op.target.transpose(op.target.reshape(gathered, sizes), inverse(order)));
}

/// index.Tensor(self, indices): the indexed dimensions, moved to the front,
/// are one dimension of rows.
static LogicalResult lowerIndex(TensorLowering &op) {
  if (failed(checkNotEmpty(op)))
    return failure();
  SmallVector<Value> indices;
  SmallVector<int64_t> indexed, order, rest;
  for (auto [dim, tensor, dtype] :
       llvm::enumerate(op.tensorList(1), op.tensorListDtypes(1))) {
    if (!tensor)
      continue;
    if (isBool(dtype) || dtype.isUnsignedInteger())
      return op.fail("an index is a mask");
    indexed.push_back(dim);
    indices.push_back(
        positions(op, tensor, dtype, op.sizes(0)[dim], /*wraps=*/true));
  }
  if (indices.empty())
    return op.fail("no dimension is indexed");
  // One position in the indexed dimensions, broadcast to one shape.
  size_t indexRank = 0;
  for (Value index : indices)
    indexRank = std::max(indexRank, TensorTarget::sizesOf(index).size());
  for (Value &index : indices) {
    SmallVector<int64_t> sizes(TensorTarget::sizesOf(index));
    sizes.insert(sizes.begin(), indexRank - sizes.size(), 1);
    index = op.target.reshape(index, sizes);
  }
  SmallVector<int64_t> indexSizes = broadcastSizes(indices);
  Type i32 = IntegerType::get(op.builder.getContext(), 32, IntegerType::Signed);
  Value flat = op.compute(
      indexSizes, indices,
      [&](OpBuilder &nested, OpLowering &, ValueRange elements) {
        ScalarBuilder s(nested, op.loc, i32);
        Value position = elements[0];
        for (size_t i = 1; i < indexed.size(); ++i)
          position = s.add(s.mul(position, s.integer(op.sizes(0)[indexed[i]])),
                           elements[i]);
        return position;
      });
  // [indexed..., rest...] -> rows
  order = indexed;
  int64_t rows = 1;
  for (int64_t dim : indexed)
    rows *= op.sizes(0)[dim];
  SmallVector<int64_t> tableSizes{rows};
  for (int64_t dim = 0; dim < op.rank(0); ++dim)
    if (!llvm::is_contained(indexed, dim)) {
      order.push_back(dim);
      rest.push_back(op.sizes(0)[dim]);
    }
  llvm::append_range(tableSizes, rest);
  Value table =
      op.target.reshape(op.target.transpose(op.tensor(0), order), tableSizes);
  Value gathered = gatherRows(op, table, op.flatten(flat));
  // [index dims..., rest...] -> the index dims where the indexed ones were, if
  // these stand together.
  SmallVector<int64_t> sizes(indexSizes);
  llvm::append_range(sizes, rest);
  gathered = op.target.reshape(gathered, sizes);
  bool together = indexed.back() - indexed.front() + 1 ==
                  static_cast<int64_t>(indexed.size());
  int64_t before = together ? indexed.front() : 0;
  SmallVector<int64_t> back;
  for (int64_t i = 0; i < before; ++i)
    back.push_back(indexRank + i);
  for (size_t i = 0; i < indexRank; ++i)
    back.push_back(i);
  for (size_t i = indexRank + before; i < sizes.size(); ++i)
    back.push_back(i);
  return op.replaceWith(op.target.transpose(gathered, back));
}

void torch_ltc::populateIndexingTensorLowerings(TensorLoweringTable &table) {
  table.add("aten.embedding", lowerEmbedding);
  table.add("aten.embedding_dense_backward", lowerEmbeddingBackward);
  table.add("aten.index_select", lowerIndexSelect);
  table.add("aten.gather", lowerGather);
  table.add("aten.index.Tensor", lowerIndex);
}
