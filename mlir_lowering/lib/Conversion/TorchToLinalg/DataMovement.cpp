//===- DataMovement.cpp - Views, slices, concatenations, pads -------------===//

#include "OpLowering.h"

using namespace mlir;
using namespace mlir::torch_ltc;

//===----------------------------------------------------------------------===//
// Reshapes and permutations
//===----------------------------------------------------------------------===//

/// view, squeeze, unsqueeze and the like: the result type says it all.
static LogicalResult lowerReshape(OpLowering &op) {
  return op.replaceWith(op.tensor(0));
}

static LogicalResult lowerPermute(OpLowering &op) {
  SmallVector<int64_t> permutation = op.integers(1);
  for (int64_t &dim : permutation)
    dim += dim < 0 ? op.rank(0) : 0;
  return op.replaceWith(op.tensors.transpose(op.tensor(0), permutation));
}

/// transpose.int(self, dim0, dim1) and t(self)
static LogicalResult lowerTranspose(OpLowering &op) {
  int64_t rank = op.rank(0);
  if (rank < 2)
    return op.replaceWith(op.tensor(0));
  bool hasDims = op.getNumOperands() > 1;
  int64_t a = hasDims ? op.dimension(1, rank) : 0;
  int64_t b = hasDims ? op.dimension(2, rank) : 1;
  auto permutation = llvm::to_vector(llvm::seq<int64_t>(0, rank));
  std::swap(permutation[a], permutation[b]);
  return op.replaceWith(op.tensors.transpose(op.tensor(0), permutation));
}

static LogicalResult lowerExpand(OpLowering &op) {
  return op.replaceWith(op.tensors.broadcast(op.tensor(0), op.resultSizes()));
}

/// repeat(self, repeats): each dimension is made two, of which the first is
/// broadcast.
static LogicalResult lowerRepeat(OpLowering &op) {
  SmallVector<int64_t> repeats = op.integers(1);
  size_t missing = repeats.size() - op.rank(0);
  SmallVector<int64_t> apart, repeated;
  for (auto [dim, count] : llvm::enumerate(repeats)) {
    int64_t size = dim < missing ? 1 : op.sizes(0)[dim - missing];
    apart.append({1, size});
    repeated.append({count, size});
  }
  Value input = op.tensors.reshape(op.tensor(0), apart);
  return op.replaceWith(op.tensors.broadcast(input, repeated));
}

//===----------------------------------------------------------------------===//
// Slices
//===----------------------------------------------------------------------===//

namespace {
/// A part of a tensor along one dimension.
struct Slice {
  SmallVector<int64_t> offsets, sizes, strides;
};
} // namespace

static int64_t clampIndex(std::optional<int64_t> index, int64_t none,
                          int64_t size) {
  int64_t value = index.value_or(none);
  if (value < 0)
    value += size;
  return std::clamp<int64_t>(value, 0, size);
}

/// Arguments dim, start, end, step from position `first` on, of a tensor of
/// these sizes.
static Slice readSlice(OpLowering &op, ArrayRef<int64_t> sizes,
                       unsigned first) {
  Slice slice{SmallVector<int64_t>(sizes.size(), 0),
              SmallVector<int64_t>(sizes),
              SmallVector<int64_t>(sizes.size(), 1)};
  int64_t dim = op.dimension(first, sizes.size());
  int64_t size = sizes[dim];
  int64_t start = clampIndex(op.optionalInteger(first + 1), 0, size);
  int64_t end = clampIndex(op.optionalInteger(first + 2), size, size);
  int64_t step = op.integer(first + 3);
  slice.offsets[dim] = start;
  slice.strides[dim] = step;
  slice.sizes[dim] = end > start ? (end - start + step - 1) / step : 0;
  return slice;
}

/// Arguments dim, index from position `first` on: a slice of one.
static Slice readSelection(OpLowering &op, ArrayRef<int64_t> sizes,
                           unsigned first) {
  Slice slice{SmallVector<int64_t>(sizes.size(), 0),
              SmallVector<int64_t>(sizes),
              SmallVector<int64_t>(sizes.size(), 1)};
  int64_t dim = op.dimension(first, sizes.size());
  int64_t index = op.integer(first + 1);
  slice.offsets[dim] = index < 0 ? index + sizes[dim] : index;
  slice.sizes[dim] = 1;
  return slice;
}

static LogicalResult extract(OpLowering &op, const Slice &slice) {
  return op.replaceWith(op.tensors.slice(op.tensor(0), slice.offsets,
                                         slice.sizes, slice.strides));
}

static LogicalResult insert(OpLowering &op, Value source, Value tensor,
                            const Slice &slice) {
  source = op.tensors.reshape(source, slice.sizes);
  return op.replaceWith(
      op.tensors.insert(source, tensor, slice.offsets, slice.strides));
}

/// slice.Tensor(self, dim, start, end, step)
static LogicalResult lowerSlice(OpLowering &op) {
  return extract(op, readSlice(op, op.sizes(0), 1));
}

/// select.int(self, dim, index)
static LogicalResult lowerSelect(OpLowering &op) {
  return extract(op, readSelection(op, op.sizes(0), 1));
}

/// The source of an insertion has the dtype of the tensor.
static Value insertionSource(OpLowering &op) {
  return op.tensors.convert(op.tensor(1), op.dtype(1), op.dtype(0));
}

/// slice_scatter(self, src, dim, start, end, step)
static LogicalResult lowerSliceScatter(OpLowering &op) {
  return insert(op, insertionSource(op), op.tensor(0),
                readSlice(op, op.sizes(0), 2));
}

/// select_scatter(self, src, dim, index)
static LogicalResult lowerSelectScatter(OpLowering &op) {
  return insert(op, insertionSource(op), op.tensor(0),
                readSelection(op, op.sizes(0), 2));
}

/// slice_backward(grad_output, input_sizes, dim, start, end, step)
static LogicalResult lowerSliceBackward(OpLowering &op) {
  Value zeros = op.tensors.zeros(op.resultSizes(), op.resultDtype());
  return insert(op, op.tensor(0), zeros, readSlice(op, op.resultSizes(), 2));
}

/// select_backward(grad_output, input_sizes, dim, index)
static LogicalResult lowerSelectBackward(OpLowering &op) {
  Value zeros = op.tensors.zeros(op.resultSizes(), op.resultDtype());
  return insert(op, op.tensor(0), zeros,
                readSelection(op, op.resultSizes(), 2));
}

//===----------------------------------------------------------------------===//
// Concatenation
//===----------------------------------------------------------------------===//

/// Tensors of a list, in the result's dtype. torch ignores tensors of shape
/// [0] among others (a rule from before there were empty shapes).
static SmallVector<Value> listInResultDtype(OpLowering &op) {
  SmallVector<Value> parts;
  for (auto [tensor, dtype] :
       llvm::zip(op.tensorList(0), op.tensorListDtypes(0))) {
    auto type = cast<RankedTensorType>(tensor.getType());
    bool ignored = type.getRank() == 1 && type.getDimSize(0) == 0;
    if (!ignored)
      parts.push_back(op.tensors.convert(tensor, dtype, op.resultDtype()));
  }
  return parts;
}

/// cat(tensors, dim)
static LogicalResult lowerCat(OpLowering &op) {
  SmallVector<Value> parts = listInResultDtype(op);
  if (parts.empty())
    return op.replaceWith(op.tensors.zeros(op.resultSizes(), op.resultDtype()));
  int64_t dim = op.dimension(1, op.resultSizes().size());
  return op.replaceWith(op.tensors.concatenate(parts, dim, op.resultSizes()));
}

/// stack(tensors, dim)
static LogicalResult lowerStack(OpLowering &op) {
  int64_t dim = op.dimension(1, op.resultSizes().size());
  SmallVector<int64_t> partSizes(op.resultSizes());
  partSizes[dim] = 1;
  SmallVector<Value> parts;
  for (auto [tensor, dtype] :
       llvm::zip(op.tensorList(0), op.tensorListDtypes(0)))
    parts.push_back(op.tensors.reshape(
        op.tensors.convert(tensor, dtype, op.resultDtype()), partSizes));
  return op.replaceWith(op.tensors.concatenate(parts, dim, op.resultSizes()));
}

/// roll(self, shifts, dims): the end of each dimension moves to its front.
static LogicalResult lowerRoll(OpLowering &op) {
  SmallVector<int64_t> shifts = op.integers(1), dims = op.integers(2);
  Value tensor = op.tensor(0);
  bool flat = dims.empty();
  if (flat) {
    tensor = op.tensors.flatten(tensor);
    dims = {0};
  }
  for (auto [shift, dim] : llvm::zip(shifts, dims)) {
    SmallVector<int64_t> sizes(
        cast<RankedTensorType>(tensor.getType()).getShape());
    dim += dim < 0 ? static_cast<int64_t>(sizes.size()) : 0;
    int64_t size = sizes[dim];
    if (size == 0)
      continue;
    int64_t moved = ((shift % size) + size) % size;
    SmallVector<int64_t> strides(sizes.size(), 1), offsets(sizes.size(), 0);
    SmallVector<int64_t> tailSizes = sizes, headSizes = sizes;
    tailSizes[dim] = moved;
    headSizes[dim] = size - moved;
    Value head = op.tensors.slice(tensor, offsets, headSizes, strides);
    offsets[dim] = size - moved;
    Value tail = op.tensors.slice(tensor, offsets, tailSizes, strides);
    tensor = op.tensors.concatenate({tail, head}, dim, sizes);
  }
  return op.replaceWith(tensor);
}

//===----------------------------------------------------------------------===//
// Pads and triangles
//===----------------------------------------------------------------------===//

/// constant_pad_nd(self, pad, value): `pad` has (front, back) for the last
/// dimension first; negative ones cut off.
static LogicalResult lowerConstantPad(OpLowering &op) {
  SmallVector<int64_t> pad = op.integers(1);
  int64_t rank = op.rank(0);
  SmallVector<int64_t> sizes(op.sizes(0)), strides(rank, 1);
  SmallVector<int64_t> cut(rank, 0), offsets(rank, 0);
  for (size_t i = 0; i + 1 < pad.size(); i += 2) {
    int64_t dim = rank - 1 - static_cast<int64_t>(i / 2);
    cut[dim] = std::max<int64_t>(-pad[i], 0);
    offsets[dim] = std::max<int64_t>(pad[i], 0);
    sizes[dim] -= cut[dim] + std::max<int64_t>(-pad[i + 1], 0);
  }
  Value kept = op.tensors.slice(op.tensor(0), cut, sizes, strides);
  Value scalar = op.number(2).materialize(op.builder, op.loc, op.resultDtype());
  Value filled = op.tensors.fill(op.resultSizes(), scalar);
  return op.replaceWith(op.tensors.insert(kept, filled, offsets, strides));
}

/// tril and triu: (self, diagonal)
template <bool isLower> static LogicalResult lowerTriangle(OpLowering &op) {
  int64_t rank = op.rank(0), diagonal = op.integer(1);
  Value result = op.tensors.elementwise(
      op.resultSizes(), op.resultType().getElementType(), op.tensor(0),
      [&](OpBuilder &nested, Location loc, ValueRange inputs) {
        ScalarBuilder s(nested, loc, op.resultDtype());
        Value row = linalg::IndexOp::create(nested, loc, rank - 2);
        Value column = linalg::IndexOp::create(nested, loc, rank - 1);
        Value last = s.binary<arith::AddIOp>(row, s.index(diagonal));
        Value kept =
            s.compare(isLower ? Comparison::le : Comparison::ge, column, last);
        return SmallVector<Value>{s.select(kept, inputs[0], s.integer(0))};
      })[0];
  return op.replaceWith(result);
}

/// copy(self, src): the source's elements in self's shape and dtype.
static LogicalResult lowerCopy(OpLowering &op) {
  return op.replaceWith(
      op.tensors.broadcast(insertionSource(op), op.resultSizes()));
}

void torch_ltc::populateDataMovementLowerings(LoweringTable &table) {
  for (StringRef name : {"aten.view", "aten._unsafe_view", "aten.reshape",
                         "aten.unsqueeze", "aten.squeeze", "aten.squeeze.dim",
                         "aten.squeeze.dims", "aten.flatten.using_ints"})
    table.add(name, lowerReshape);
  table.add("aten.permute", lowerPermute);
  table.add("aten.transpose.int", lowerTranspose);
  table.add("aten.t", lowerTranspose);
  table.add("aten.expand", lowerExpand);
  table.add("aten.broadcast_to", lowerExpand);
  table.add("aten.repeat", lowerRepeat);
  table.add("aten.slice.Tensor", lowerSlice);
  table.add("aten.select.int", lowerSelect);
  table.add("aten.slice_scatter", lowerSliceScatter);
  table.add("aten.select_scatter", lowerSelectScatter);
  table.add("aten.slice_backward", lowerSliceBackward);
  table.add("aten.select_backward", lowerSelectBackward);
  table.add("aten.cat", lowerCat);
  table.add("aten.stack", lowerStack);
  table.add("aten.roll", lowerRoll);
  table.add("aten.constant_pad_nd", lowerConstantPad, {2});
  table.add("aten.tril", lowerTriangle<true>);
  table.add("aten.triu", lowerTriangle<false>);
  table.add("aten.copy", lowerCopy);
}
