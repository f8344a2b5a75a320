//===- DataMovement.cpp - Views, concatenations, pads ---------------------===//

#include "IndexBuilder.h"
#include "OpArguments.h"

using namespace mlir;
using namespace mlir::torch_ltc;

//===----------------------------------------------------------------------===//
// Reshapes and permutations
//===----------------------------------------------------------------------===//

/// view, squeeze, unsqueeze and similar ops: `replaceWith` reshapes the operand
/// to the result type.
static LogicalResult lowerReshape(OpLowering &op) {
  return op.replaceWith(op.tensor(0));
}

static LogicalResult lowerPermute(OpLowering &op) {
  return op.replaceWith(op.tensors.transpose(op.tensor(0), permutationOf(op)));
}

/// transpose.int(self, dim0, dim1) and t(self)
static LogicalResult lowerTranspose(OpLowering &op) {
  if (op.rank(0) < 2)
    return op.replaceWith(op.tensor(0));
  return op.replaceWith(
      op.tensors.transpose(op.tensor(0), transpositionOf(op)));
}

static LogicalResult lowerExpand(OpLowering &op) {
  return op.replaceWith(op.tensors.broadcast(op.tensor(0), op.resultSizes()));
}

/// repeat(self, repeats)
static LogicalResult lowerRepeat(OpLowering &op) {
  RepeatedSizes sizes(op);
  Value input = op.tensors.reshape(op.tensor(0), sizes.split);
  return op.replaceWith(op.tensors.broadcast(input, sizes.repeated));
}

//===----------------------------------------------------------------------===//
// Concatenation
//===----------------------------------------------------------------------===//

/// The tensors of a list in the result's dtype, without tensors of shape [0].
/// torch ignores these among tensors of any rank, because [0] was once the only
/// empty shape.
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

/// `tensor` rolled along `dim` by `shift`, a dynamic scalar: each element is
/// read from its source position.
static Value rollBy(OpLowering &op, Value tensor, Value shift, int64_t dim) {
  auto type = cast<RankedTensorType>(tensor.getType());
  int64_t size = type.getDimSize(dim);
  return op.tensors.fromIndices(
      type.getShape(), type.getElementType(),
      [&](OpBuilder &nested, Location loc, ValueRange indices) {
        IndexBuilder b(nested, loc);
        Value moved = arith::RemSIOp::create(
            nested, loc,
            arith::IndexCastOp::create(nested, loc, nested.getIndexType(),
                                       shift),
            b.constant(size));
        // The difference is in (-size, 2 * size).
        Value from = b.sub(indices[dim], moved);
        Value zero = b.constant(0), end = b.constant(size);
        from = b.select(b.less(from, zero), b.add(from, end), from);
        from = b.select(b.less(from, end), from, b.sub(from, end));
        SmallVector<Value> source(indices);
        source[dim] = from;
        return b.extract(tensor, source);
      });
}

/// roll(self, shifts, dims): the end of each dimension moves to its front.
static LogicalResult lowerRoll(OpLowering &op) {
  SmallVector<NumberOperand> shifts = op.numbers(1);
  SmallVector<int64_t> dims = op.integers(2);
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
    if (!shift.constant) {
      tensor = rollBy(op, tensor, shift.value, dim);
      continue;
    }
    int64_t moved = cast<IntegerAttr>(shift.constant).getInt() % size;
    moved += moved < 0 ? size : 0;
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

/// constant_pad_nd with pads that are dynamic scalars: each element is read
/// from its source position, or is the pad value if there is none.
static LogicalResult padBy(OpLowering &op, ArrayRef<NumberOperand> pad) {
  auto type = op.resultType();
  Type index =
      IntegerType::get(op.builder.getContext(), 64, IntegerType::Signed);
  bool isEmpty = op.tensorType(0).getNumElements() == 0;
  Value result = op.tensors.fromIndices(
      type.getShape(), type.getElementType(),
      [&](OpBuilder &nested, Location loc, ValueRange indices) {
        IndexBuilder b(nested, loc);
        Value scalar = op.number(2).materialize(nested, loc, op.resultDtype());
        if (isEmpty)
          return scalar;
        SmallVector<Value> source(indices);
        Value zero = b.constant(0), isInside;
        for (size_t i = 0; i + 1 < pad.size(); i += 2) {
          int64_t dim = op.rank(0) - 1 - static_cast<int64_t>(i / 2);
          Value low = pad[i].materialize(nested, loc, index);
          low = arith::IndexCastOp::create(nested, loc, nested.getIndexType(),
                                           low);
          Value from = b.sub(indices[dim], low);
          Value last = b.constant(op.sizes(0)[dim] - 1);
          source[dim] = b.max(zero, b.min(from, last));
          Value fits = b.equal(from, source[dim]);
          isInside = isInside
                         ? arith::AndIOp::create(nested, loc, isInside, fits)
                               .getResult()
                         : fits;
        }
        Value element = b.extract(op.tensor(0), source);
        return isInside ? b.select(isInside, element, scalar) : element;
      });
  return op.replaceWith(result);
}

/// constant_pad_nd(self, pad, value): `pad` lists (front, back), starting with
/// the last dimension; negative pads crop.
static LogicalResult lowerConstantPad(OpLowering &op) {
  SmallVector<NumberOperand> numbers = op.numbers(1);
  if (llvm::any_of(numbers, [](auto &number) { return !number.constant; }))
    return padBy(op, numbers);
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
  int64_t rank = op.rank(0);
  NumberOperand diagonal = op.number(1);
  Type number =
      IntegerType::get(op.builder.getContext(), 64, IntegerType::Signed);
  Value result = op.tensors.elementwise(
      op.resultSizes(), op.resultType().getElementType(), op.tensor(0),
      [&](OpBuilder &nested, Location loc, ValueRange inputs) {
        ScalarBuilder s(nested, loc, op.resultDtype());
        Value row = linalg::IndexOp::create(nested, loc, rank - 2);
        Value column = linalg::IndexOp::create(nested, loc, rank - 1);
        Value offset = arith::IndexCastOp::create(
            nested, loc, nested.getIndexType(),
            diagonal.materialize(nested, loc, number));
        Value last = s.binary<arith::AddIOp>(row, offset);
        Value kept =
            s.compare(isLower ? Comparison::le : Comparison::ge, column, last);
        return SmallVector<Value>{s.select(kept, inputs[0], s.integer(0))};
      })[0];
  return op.replaceWith(result);
}

/// copy(self, src): the source's elements with self's shape and dtype.
static LogicalResult lowerCopy(OpLowering &op) {
  Value source = op.tensors.convert(op.tensor(1), op.dtype(1), op.dtype(0));
  return op.replaceWith(op.tensors.broadcast(source, op.resultSizes()));
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
  table.add("aten.cat", lowerCat);
  table.add("aten.stack", lowerStack);
  table.add("aten.roll", lowerRoll, {1});
  table.add("aten.constant_pad_nd", lowerConstantPad, {1, 2});
  table.add("aten.tril", lowerTriangle<true>, {1});
  table.add("aten.triu", lowerTriangle<false>, {1});
  table.add("aten.copy", lowerCopy);
}
