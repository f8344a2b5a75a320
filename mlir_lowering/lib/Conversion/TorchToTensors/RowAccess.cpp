//===- RowAccess.cpp - Reads and writes of table rows ---------------------===//

#include "RowAccess.h"

using namespace mlir;
using namespace mlir::torch_ltc;

Type torch_ltc::positionDtype(TensorLowering &op) {
  return IntegerType::get(op.builder.getContext(), 32, IntegerType::Signed);
}

Value torch_ltc::positionRange(TensorLowering &op, ArrayRef<int64_t> sizes) {
  Value range = op.target.iota(llvm::product_of(sizes),
                               op.target.elementTypeOf(positionDtype(op)));
  return op.target.reshape(range, sizes);
}

Value torch_ltc::positions(TensorLowering &op, Value indices, Type dtype,
                           int64_t size, bool wraps) {
  Type i32 = positionDtype(op);
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

Value torch_ltc::gatherRows(TensorLowering &op, Value table, Value rows) {
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

/// Returns [b, r]: for each row, the index of the last of the n values that is
/// written to it, or -1. `isHere` [b, r, n]: whether the value is written to
/// the row.
static Value lastWriter(TensorLowering &op, Value isHere) {
  int64_t count = TensorTarget::sizesOf(isHere)[2];
  Value none = op.target.splat({1, 1, 1}, op.scalar(positionDtype(op), -1));
  Value writers = op.select(isHere, positionRange(op, {1, 1, count}), none);
  return op.target.reduce(ReductionKind::Maximum, writers, {2});
}

static Value replaceRows(TensorLowering &op, Value table, Value isHere,
                         Value values) {
  Value writer = lastWriter(op, isHere);
  SmallVector<int64_t> sizes(TensorTarget::sizesOf(writer));
  auto compare = [&](auto body) {
    return op.compute(
        sizes, writer,
        [&](OpBuilder &nested, OpLowering &, ValueRange elements) {
          ScalarBuilder s(nested, op.loc, positionDtype(op));
          return body(s, elements[0]);
        });
  };
  Value isWritten = compare([](ScalarBuilder &s, Value writer) {
    return s.compare(Comparison::ge, writer, s.integer(0));
  });
  Value source = compare([](ScalarBuilder &s, Value writer) {
    return s.maximum(writer, s.integer(0));
  });
  sizes.push_back(1);
  return op.select(op.target.reshape(isWritten, sizes),
                   op.target.gather(values, source), table);
}

/// Adds to each row of `table` the sum of the values that are written to it.
/// Float sums are computed as a product with the matrix `isHere`. In a table of
/// width 1, they are computed directly, so that an infinity doesn't turn the
/// sums of other rows into NaN.
static Value addRows(TensorLowering &op, Value table, Value isHere,
                     Value values, Type dtype) {
  ArrayRef<int64_t> here = TensorTarget::sizesOf(isHere);
  int64_t width = TensorTarget::sizesOf(values)[2];
  Value sums;
  if (width == 1 || !isa<FloatType>(dtype)) {
    Value wide = op.target.reshape(values, {here[0], 1, here[2], width});
    Value chosen =
        op.select(op.target.reshape(isHere, {here[0], here[1], here[2], 1}),
                  wide, op.zeros({1, 1, 1, 1}, dtype));
    sums = op.target.reduce(ReductionKind::Sum, chosen, {2});
  } else {
    Value factors = op.convert(isHere, op.builder.getI1Type(), dtype);
    sums = op.target.matmul(factors, values);
  }
  return op.add(table, sums, dtype);
}

Value torch_ltc::writeRows(TensorLowering &op, Value table, Value rows,
                           Value values, Type dtype, bool accumulate) {
  SmallVector<int64_t> sizes(TensorTarget::sizesOf(table));
  int64_t count = TensorTarget::sizesOf(rows)[1];
  Value isHere = op.equal(positionRange(op, {1, sizes[1], 1}),
                          op.target.reshape(rows, {sizes[0], 1, count}));
  if (!accumulate)
    return replaceRows(op, table, isHere, values);
  Type compute = computeDtypeOf(dtype);
  Value sums = addRows(op, op.convert(table, dtype, compute), isHere,
                       op.convert(values, dtype, compute), compute);
  return op.convert(sums, compute, dtype);
}

SmallVector<int64_t> torch_ltc::firstOrder(int64_t rank, int64_t dim) {
  SmallVector<int64_t> order{dim};
  for (int64_t i = 0; i < rank; ++i)
    if (i != dim)
      order.push_back(i);
  return order;
}

SmallVector<int64_t> torch_ltc::lastOrder(int64_t rank, int64_t dim) {
  auto order = llvm::to_vector(llvm::seq<int64_t>(0, rank));
  order.erase(order.begin() + dim);
  order.push_back(dim);
  return order;
}

SmallVector<int64_t> torch_ltc::inversePermutation(ArrayRef<int64_t> order) {
  SmallVector<int64_t> result(order.size());
  for (auto [place, dim] : llvm::enumerate(order))
    result[dim] = place;
  return result;
}

LogicalResult torch_ltc::checkNotEmpty(TensorLowering &op) {
  for (Value argument : op.getArguments())
    if (op.isTensor(argument) && op.tensorType(argument).getNumElements() == 0)
      return op.fail("a tensor has no elements");
  if (op.resultType().getNumElements() == 0)
    return op.fail("a tensor has no elements");
  return success();
}

/// Reads the index tensors, reshaped to the same rank so that they broadcast,
/// and the dimensions that they index. Emits an error if an index tensor is a
/// mask or there are no index tensors.
static LogicalResult readIndices(TensorLowering &op, Value list,
                                 ArrayRef<int64_t> sizes,
                                 SmallVector<Value> &indices,
                                 SmallVector<int64_t> &indexed) {
  for (auto [dim, tensor, dtype] :
       llvm::enumerate(op.tensorList(list), op.tensorListDtypes(list))) {
    if (!tensor)
      continue;
    if (isBool(dtype) || dtype.isUnsignedInteger())
      return op.fail("an index is a mask");
    indexed.push_back(dim);
    indices.push_back(positions(op, tensor, dtype, sizes[dim], /*wraps=*/true));
  }
  if (indices.empty())
    return op.fail("no dimension is indexed");
  size_t rank = 0;
  for (Value index : indices)
    rank = std::max(rank, TensorTarget::sizesOf(index).size());
  for (Value &index : indices) {
    SmallVector<int64_t> sizes(TensorTarget::sizesOf(index));
    sizes.insert(sizes.begin(), rank - sizes.size(), 1);
    index = op.target.reshape(index, sizes);
  }
  return success();
}

FailureOr<RowIndex> RowIndex::read(TensorLowering &op, Value self, Value list) {
  ArrayRef<int64_t> sizes = op.sizes(self);
  SmallVector<Value> indices;
  SmallVector<int64_t> indexed, rest;
  if (failed(readIndices(op, list, sizes, indices, indexed)))
    return failure();
  RowIndex result;
  // The positions in the merged indexed dimensions, in the broadcast shape of
  // the index tensors.
  SmallVector<int64_t> indexSizes = broadcastSizes(indices);
  const size_t indexRank = indexSizes.size();
  Value flat = op.compute(
      indexSizes, indices,
      [&](OpBuilder &nested, OpLowering &, ValueRange elements) {
        ScalarBuilder s(nested, op.loc, positionDtype(op));
        Value position = elements[0];
        for (size_t i = 1; i < indexed.size(); ++i)
          position =
              s.add(s.mul(position, s.integer(sizes[indexed[i]])), elements[i]);
        return position;
      });
  result.rows = op.flatten(flat);
  result.order = indexed;
  int64_t rows = 1;
  for (int64_t dim : indexed)
    rows *= sizes[dim];
  result.tableSizes.push_back(rows);
  for (int64_t dim = 0; dim < op.rank(self); ++dim)
    if (!llvm::is_contained(indexed, dim)) {
      result.order.push_back(dim);
      rest.push_back(sizes[dim]);
    }
  llvm::append_range(result.tableSizes, rest);
  // From [index dims..., rest...], `back` moves the index dims to the place of
  // the indexed dims if these are adjacent.
  result.gatheredSizes = indexSizes;
  llvm::append_range(result.gatheredSizes, rest);
  bool together = indexed.back() - indexed.front() + 1 ==
                  static_cast<int64_t>(indexed.size());
  int64_t before = together ? indexed.front() : 0;
  for (int64_t i = 0; i < before; ++i)
    result.back.push_back(indexRank + i);
  for (size_t i = 0; i < indexRank; ++i)
    result.back.push_back(i);
  for (size_t i = indexRank + before; i < result.gatheredSizes.size(); ++i)
    result.back.push_back(i);
  return result;
}
