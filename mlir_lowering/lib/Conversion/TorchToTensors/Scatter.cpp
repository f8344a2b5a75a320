//===- Scatter.cpp - Writes at positions that a tensor contains -----------===//

#include "RowAccess.h"

#include "../TorchToLinalg/OpArguments.h"

#include "torch_ltc/Dialect/Torch/TorchOps_indexing.h"

using namespace mlir;
using namespace mlir::torch_ltc;
using namespace mlir::torch_ltc::torch::ops;

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

/// scatter and its relatives; `scalars` is an argument of the op, a tensor or a
/// number. The lowering moves the dimension to the end; the other dimensions
/// are a batch of tables with one column.
static LogicalResult scatterAlong(TensorLowering &op, ScatterPlaces places,
                                  Value scalars, bool accumulate) {
  if (failed(checkNotEmpty(op)))
    return failure();
  ArrayRef<int64_t> given = op.sizes(places.self);
  ArrayRef<int64_t> indexSizes = op.sizes(places.index);
  if (given.empty())
    return op.fail("its tensor has no dimensions");
  Type dtype = op.resultDtype();
  if (accumulate && isBool(dtype))
    return op.fail("it adds bools");
  int64_t dim = op.dimension(places.dim, given.size()), size = given[dim];
  int64_t count = indexSizes[dim];
  SmallVector<int64_t> order = lastOrder(given.size(), dim);
  // If the index is smaller than the tensor, pad the index with -1, so that
  // nothing is written beyond it.
  SmallVector<int64_t> wide(given);
  wide[dim] = count;
  Value index = positions(op, op.tensor(places.index), op.dtype(places.index),
                          size, /*wraps=*/false);
  index =
      cutAndFill(op, index, indexSizes, wide, op.scalar(positionDtype(op), -1));
  bool isTensor = op.isTensor(scalars);
  Value source =
      isTensor ? op.tensor(scalars)
               : op.target.broadcast(op.numberTensor(scalars, dtype), wide);
  ArrayRef<int64_t> used = isTensor ? indexSizes : ArrayRef(wide);
  source = cutAndFill(op, source, used, wide, op.scalar(dtype, 0));
  int64_t batch = op.resultType().getNumElements() / size;
  auto rows = [&](Value tensor, ArrayRef<int64_t> sizes) {
    return op.target.reshape(op.target.transpose(tensor, order), sizes);
  };
  Value written = writeRows(op, rows(op.tensor(places.self), {batch, size, 1}),
                            rows(index, {batch, count}),
                            rows(source, {batch, count, 1}), dtype, accumulate);
  SmallVector<int64_t> sizes;
  for (int64_t original : order)
    sizes.push_back(given[original]);
  return op.replaceWith(op.target.transpose(op.target.reshape(written, sizes),
                                            inversePermutation(order)));
}

static LogicalResult lowerScatterSource(TensorLowering &op,
                                        AtenScatterSrcOp args) {
  return scatterAlong(op, ScatterPlaces(args), args.getSrc(),
                      /*accumulate=*/false);
}

static LogicalResult lowerScatterValue(TensorLowering &op,
                                       AtenScatterValueOp args) {
  return scatterAlong(op, ScatterPlaces(args), args.getValue(),
                      /*accumulate=*/false);
}

static LogicalResult lowerScatterAdd(TensorLowering &op,
                                     AtenScatterAddOp args) {
  return scatterAlong(op, ScatterPlaces(args), args.getSrc(),
                      /*accumulate=*/true);
}

static LogicalResult lowerScatterReduce(TensorLowering &op,
                                        AtenScatterReduceTwoOp args) {
  if (op.string(args.getReduce()) != "sum" ||
      !op.boolean(args.getIncludeSelf()))
    return op.fail(
        "its reduction isn't a sum that includes the existing values");
  return scatterAlong(op, ScatterPlaces(args), args.getSrc(),
                      /*accumulate=*/true);
}

/// index_add, index_copy and index_fill: the slices along the dimension are the
/// rows of the table.
static LogicalResult writeSlices(TensorLowering &op, ScatterPlaces places,
                                 Value source, bool wraps, bool accumulate) {
  ArrayRef<int64_t> given = op.sizes(places.self);
  int64_t dim = op.dimension(places.dim, given.size()), size = given[dim];
  int64_t count = op.tensorType(places.index).getNumElements();
  int64_t width = op.resultType().getNumElements() / size;
  SmallVector<int64_t> order = firstOrder(given.size(), dim);
  Value index = positions(op, op.tensor(places.index), op.dtype(places.index),
                          size, wraps);
  auto rows = [&](Value tensor, int64_t number) {
    return op.target.reshape(op.target.transpose(tensor, order),
                             {1, number, width});
  };
  Value written = writeRows(op, rows(op.tensor(places.self), size),
                            op.target.reshape(index, {1, count}),
                            rows(source, count), op.resultDtype(), accumulate);
  SmallVector<int64_t> sizes;
  for (int64_t original : order)
    sizes.push_back(given[original]);
  return op.replaceWith(op.target.transpose(op.target.reshape(written, sizes),
                                            inversePermutation(order)));
}

static LogicalResult checkHasDimensions(TensorLowering &op, Value self) {
  if (failed(checkNotEmpty(op)))
    return failure();
  if (op.rank(self) == 0)
    return op.fail("its tensor has no dimensions");
  return success();
}

static LogicalResult lowerIndexAdd(TensorLowering &op, AtenIndexAddOp args) {
  if (failed(checkHasDimensions(op, args.getSelf())))
    return failure();
  Type dtype = op.resultDtype();
  if (isBool(dtype))
    return op.fail("it adds bools");
  Value source = op.tensor(args.getSource());
  if (op.number(args.getAlpha()).asDouble() != 1.0) {
    Value alpha = op.target.broadcast(op.numberTensor(args.getAlpha(), dtype),
                                      op.sizes(args.getSource()));
    source = op.mul(source, alpha, dtype);
  }
  return writeSlices(op, ScatterPlaces(args), source, /*wraps=*/false,
                     /*accumulate=*/true);
}

static LogicalResult lowerIndexCopy(TensorLowering &op, AtenIndexCopyOp args) {
  if (failed(checkHasDimensions(op, args.getSelf())))
    return failure();
  return writeSlices(op, ScatterPlaces(args), op.tensor(args.getSource()),
                     /*wraps=*/false, /*accumulate=*/false);
}

template <typename OpTy>
static LogicalResult lowerIndexFill(TensorLowering &op, OpTy args) {
  if (failed(checkHasDimensions(op, args.getSelf())))
    return failure();
  SmallVector<int64_t> sizes(op.sizes(args.getSelf()));
  sizes[op.dimension(args.getDim(), sizes.size())] =
      op.tensorType(args.getIndex()).getNumElements();
  Value value = args.getValue();
  Value scalar = op.isTensor(value) ? op.operandAs(value, op.resultDtype())
                                    : op.numberTensor(value, op.resultDtype());
  return writeSlices(op, ScatterPlaces(args),
                     op.target.broadcast(scalar, sizes),
                     /*wraps=*/true,
                     /*accumulate=*/false);
}

/// `x[mask] = value` with one value, which needs no positions.
static LogicalResult lowerMaskedFill(TensorLowering &op, AtenIndexPutOp args) {
  Value self = op.tensor(args.getSelf());
  ArrayRef<int64_t> sizes = op.sizes(args.getSelf());
  Value mask = op.tensorList(args.getIndices()).front();
  SmallVector<int64_t> aligned(TensorTarget::sizesOf(mask));
  aligned.resize(sizes.size(), 1);
  Value value = op.target.broadcast(
      op.target.reshape(op.tensor(args.getValues()),
                        SmallVector<int64_t>(sizes.size(), 1)),
      sizes);
  if (op.boolean(args.getAccumulate()))
    value = op.add(self, value, op.resultDtype());
  return op.replaceWith(
      op.select(op.target.reshape(mask, aligned), value, self));
}

static LogicalResult lowerIndexPut(TensorLowering &op, AtenIndexPutOp args) {
  if (failed(checkNotEmpty(op)))
    return failure();
  SmallVector<Type> dtypes = op.tensorListDtypes(args.getIndices());
  bool accumulate = op.boolean(args.getAccumulate());
  if (accumulate && isBool(op.resultDtype()))
    return op.fail("it adds bools");
  if (dtypes.size() == 1 && dtypes[0] && isBool(dtypes[0]) &&
      op.tensorType(args.getValues()).getNumElements() == 1)
    return lowerMaskedFill(op, args);
  FailureOr<RowIndex> index =
      RowIndex::read(op, args.getSelf(), args.getIndices());
  if (failed(index))
    return failure();
  SmallVector<int64_t> indexed, tableDims;
  for (int64_t dim : index->back)
    indexed.push_back(index->gatheredSizes[dim]);
  for (int64_t dim : index->order)
    tableDims.push_back(op.sizes(args.getSelf())[dim]);
  int64_t count = TensorTarget::sizesOf(index->rows)[0];
  int64_t rows = index->tableSizes[0];
  int64_t width = op.resultType().getNumElements() / rows;
  Value values = op.target.transpose(
      op.target.broadcast(op.tensor(args.getValues()), indexed),
      inversePermutation(index->back));
  Value written =
      writeRows(op,
                op.target.reshape(op.target.transpose(op.tensor(args.getSelf()),
                                                      index->order),
                                  {1, rows, width}),
                op.target.reshape(index->rows, {1, count}),
                op.target.reshape(values, {1, count, width}), op.resultDtype(),
                accumulate);
  return op.replaceWith(op.target.transpose(
      op.target.reshape(written, tableDims), inversePermutation(index->order)));
}

void torch_ltc::populateScatterTensorLowerings(TensorLoweringTable &table) {
  table.add(lowerScatterSource);
  table.add(lowerScatterValue);
  table.add(lowerScatterAdd);
  table.add(lowerScatterReduce);
  table.add(lowerIndexAdd);
  table.add(lowerIndexCopy);
  table.add(lowerIndexFill<AtenIndexFillIntScalarOp>);
  table.add(lowerIndexFill<AtenIndexFillIntTensorOp>);
  table.add(lowerIndexPut);
}
