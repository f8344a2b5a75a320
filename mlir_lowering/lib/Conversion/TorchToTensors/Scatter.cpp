//===- Scatter.cpp - Writes at positions that a tensor contains -----------===//

#include "RowAccess.h"

using namespace mlir;
using namespace mlir::torch_ltc;

/// Crops `tensor` to `sizes`, and then pads it with `scalar` to `target`.
static Value cutAndFill(TensorLowering &op, Value tensor,
                        ArrayRef<int64_t> sizes, ArrayRef<int64_t> target,
                        TypedAttr scalar) {
  SmallVector<int64_t> zeros(sizes.size(), 0), ones(sizes.size(), 1), high;
  for (auto [size, wanted] : llvm::zip_equal(sizes, target))
    high.push_back(wanted - size);
  Value cut = op.target.slice(tensor, zeros, sizes, ones);
  return op.target.pad(cut, zeros, high, zeros, scalar);
}

/// scatter and its relatives: (self, dim, index, src or value). The lowering
/// moves `dim` to the end; the other dimensions are a batch of tables with one
/// column.
static LogicalResult scatterAlong(TensorLowering &op, bool accumulate) {
  if (failed(checkNotEmpty(op)))
    return failure();
  int64_t rank = op.rank(0);
  if (rank == 0)
    return op.fail("its tensor has no dimensions");
  Type dtype = op.resultDtype();
  if (accumulate && isBool(dtype))
    return op.fail("it adds bools");
  int64_t dim = op.dimension(1, rank), size = op.sizes(0)[dim];
  int64_t count = op.sizes(2)[dim];
  SmallVector<int64_t> order = lastOrder(rank, dim);
  // If the index is smaller than the tensor, pad the index with -1, so that
  // nothing is written beyond it.
  SmallVector<int64_t> wide(op.sizes(0));
  wide[dim] = count;
  Value index = positions(op, op.tensor(2), op.dtype(2), size, /*wraps=*/false);
  index = cutAndFill(op, index, op.sizes(2), wide,
                     op.scalar(positionDtype(op), -1));
  Value source = op.isTensor(3)
                     ? op.tensor(3)
                     : op.target.broadcast(op.numberTensor(3, dtype), wide);
  ArrayRef<int64_t> used = op.isTensor(3) ? op.sizes(2) : ArrayRef(wide);
  source = cutAndFill(op, source, used, wide, op.scalar(dtype, 0));
  int64_t batch = op.resultType().getNumElements() / size;
  auto rows = [&](Value tensor, ArrayRef<int64_t> sizes) {
    return op.target.reshape(op.target.transpose(tensor, order), sizes);
  };
  Value written = writeRows(op, rows(op.tensor(0), {batch, size, 1}),
                            rows(index, {batch, count}),
                            rows(source, {batch, count, 1}), dtype, accumulate);
  SmallVector<int64_t> sizes;
  for (int64_t original : order)
    sizes.push_back(op.sizes(0)[original]);
  return op.replaceWith(op.target.transpose(op.target.reshape(written, sizes),
                                            inversePermutation(order)));
}

template <bool accumulate>
static LogicalResult lowerScatter(TensorLowering &op) {
  return scatterAlong(op, accumulate);
}

/// scatter_reduce.two(self, dim, index, src, reduce, include_self)
static LogicalResult lowerScatterReduce(TensorLowering &op) {
  if (op.string(4) != "sum" || !op.boolean(5))
    return op.fail(
        "its reduction isn't a sum that includes the existing values");
  return scatterAlong(op, /*accumulate=*/true);
}

/// index_add, index_copy and index_fill: (self, dim, index, source or value,
/// ...). The slices along `dim` are the rows of the table.
static LogicalResult writeSlices(TensorLowering &op, Value source, bool wraps,
                                 bool accumulate) {
  int64_t dim = op.dimension(1, op.rank(0)), size = op.sizes(0)[dim];
  int64_t count = op.tensorType(2).getNumElements();
  int64_t width = op.resultType().getNumElements() / size;
  SmallVector<int64_t> order = firstOrder(op.rank(0), dim);
  Value index = op.target.reshape(
      positions(op, op.tensor(2), op.dtype(2), size, wraps), {1, count});
  auto rows = [&](Value tensor, int64_t number) {
    return op.target.reshape(op.target.transpose(tensor, order),
                             {1, number, width});
  };
  Value written = writeRows(op, rows(op.tensor(0), size), index,
                            rows(source, count), op.resultDtype(), accumulate);
  SmallVector<int64_t> sizes;
  for (int64_t original : order)
    sizes.push_back(op.sizes(0)[original]);
  return op.replaceWith(op.target.transpose(op.target.reshape(written, sizes),
                                            inversePermutation(order)));
}

static LogicalResult checkHasDimensions(TensorLowering &op) {
  if (failed(checkNotEmpty(op)))
    return failure();
  if (op.rank(0) == 0)
    return op.fail("its tensor has no dimensions");
  return success();
}

/// index_add(self, dim, index, source, alpha)
static LogicalResult lowerIndexAdd(TensorLowering &op) {
  if (failed(checkHasDimensions(op)))
    return failure();
  Type dtype = op.resultDtype();
  if (isBool(dtype))
    return op.fail("it adds bools");
  Value source = op.tensor(3);
  if (op.number(4).asDouble() != 1.0) {
    Value alpha = op.target.broadcast(op.numberTensor(4, dtype), op.sizes(3));
    source = op.mul(source, alpha, dtype);
  }
  return writeSlices(op, source, /*wraps=*/false, /*accumulate=*/true);
}

static LogicalResult lowerIndexCopy(TensorLowering &op) {
  if (failed(checkHasDimensions(op)))
    return failure();
  return writeSlices(op, op.tensor(3), /*wraps=*/false, /*accumulate=*/false);
}

static LogicalResult lowerIndexFill(TensorLowering &op) {
  if (failed(checkHasDimensions(op)))
    return failure();
  SmallVector<int64_t> sizes(op.sizes(0));
  sizes[op.dimension(1, op.rank(0))] = op.tensorType(2).getNumElements();
  Value value = op.isTensor(3) ? op.operandAs(3, op.resultDtype())
                               : op.numberTensor(3, op.resultDtype());
  return writeSlices(op, op.target.broadcast(value, sizes), /*wraps=*/true,
                     /*accumulate=*/false);
}

/// `x[mask] = value` with one value, which needs no positions.
static LogicalResult lowerMaskedFill(TensorLowering &op) {
  Value mask = op.tensorList(1)[0];
  SmallVector<int64_t> aligned(TensorTarget::sizesOf(mask));
  aligned.resize(op.rank(0), 1);
  Value value = op.target.broadcast(
      op.target.reshape(op.tensor(2), SmallVector<int64_t>(op.rank(0), 1)),
      op.sizes(0));
  if (op.boolean(3))
    value = op.add(op.tensor(0), value, op.resultDtype());
  return op.replaceWith(
      op.select(op.target.reshape(mask, aligned), value, op.tensor(0)));
}

/// index_put(self, indices, values, accumulate)
static LogicalResult lowerIndexPut(TensorLowering &op) {
  if (failed(checkNotEmpty(op)))
    return failure();
  SmallVector<Type> dtypes = op.tensorListDtypes(1);
  bool accumulate = op.boolean(3);
  if (accumulate && isBool(op.resultDtype()))
    return op.fail("it adds bools");
  if (dtypes.size() == 1 && dtypes[0] && isBool(dtypes[0]) &&
      op.tensorType(2).getNumElements() == 1)
    return lowerMaskedFill(op);
  FailureOr<RowIndex> index = RowIndex::read(op);
  if (failed(index))
    return failure();
  SmallVector<int64_t> indexed, tableDims;
  for (int64_t dim : index->back)
    indexed.push_back(index->gatheredSizes[dim]);
  for (int64_t dim : index->order)
    tableDims.push_back(op.sizes(0)[dim]);
  int64_t count = TensorTarget::sizesOf(index->rows)[0];
  int64_t rows = index->tableSizes[0];
  int64_t width = op.resultType().getNumElements() / rows;
  Value values = op.target.transpose(op.target.broadcast(op.tensor(2), indexed),
                                     inversePermutation(index->back));
  Value written = writeRows(
      op,
      op.target.reshape(op.target.transpose(op.tensor(0), index->order),
                        {1, rows, width}),
      op.target.reshape(index->rows, {1, count}),
      op.target.reshape(values, {1, count, width}), op.resultDtype(),
      accumulate);
  return op.replaceWith(op.target.transpose(
      op.target.reshape(written, tableDims), inversePermutation(index->order)));
}

void torch_ltc::populateScatterTensorLowerings(TensorLoweringTable &table) {
  table.add("aten.scatter.src", lowerScatter<false>);
  table.add("aten.scatter.value", lowerScatter<false>, {3});
  table.add("aten.scatter_add", lowerScatter<true>);
  table.add("aten.scatter_reduce.two", lowerScatterReduce);
  table.add("aten.index_add", lowerIndexAdd, {4});
  table.add("aten.index_copy", lowerIndexCopy);
  table.add("aten.index_fill.int_Scalar", lowerIndexFill, {3});
  table.add("aten.index_fill.int_Tensor", lowerIndexFill);
  table.add("aten.index_put", lowerIndexPut);
}
