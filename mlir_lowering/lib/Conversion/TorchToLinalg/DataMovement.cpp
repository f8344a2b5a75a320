//===- DataMovement.cpp - Views, concatenations, pads ---------------------===//

#include "IndexBuilder.h"
#include "OpArguments.h"

#include "torch_ltc/Dialect/Torch/TorchOps_data_movement.h"
#include "torch_ltc/Dialect/Torch/TorchOps_elementwise.h"

using namespace mlir;
using namespace mlir::torch_ltc;
using namespace mlir::torch_ltc::torch::ops;

//===----------------------------------------------------------------------===//
// Reshapes and permutations
//===----------------------------------------------------------------------===//

/// permute, transpose.int and t
template <typename OpTy>
static LogicalResult lowerPermutation(OpLowering &op, OpTy args) {
  return op.replaceWith(
      op.tensors.transpose(op.tensor(args.getSelf()), permutationOf(op)));
}

static LogicalResult lowerExpand(OpLowering &op, AtenExpandOp args) {
  return op.replaceWith(
      op.tensors.broadcast(op.tensor(args.getSelf()), op.resultSizes()));
}

static LogicalResult lowerRepeat(OpLowering &op, AtenRepeatOp args) {
  RepeatedSizes sizes(op, args);
  Value input = op.tensors.reshape(op.tensor(args.getSelf()), sizes.split);
  return op.replaceWith(op.tensors.broadcast(input, sizes.repeated));
}

//===----------------------------------------------------------------------===//
// Concatenation
//===----------------------------------------------------------------------===//

/// The tensors of a list in the result's dtype, without tensors of shape [0].
/// torch ignores these among tensors of any rank, because [0] was once the only
/// empty shape.
static SmallVector<Value> listInResultDtype(OpLowering &op, Value list) {
  SmallVector<Value> parts;
  for (auto [tensor, dtype] :
       llvm::zip(op.tensorList(list), op.tensorListDtypes(list))) {
    auto type = cast<RankedTensorType>(tensor.getType());
    bool ignored = type.getRank() == 1 && type.getDimSize(0) == 0;
    if (!ignored)
      parts.push_back(op.tensors.convert(tensor, dtype, op.resultDtype()));
  }
  return parts;
}

static LogicalResult lowerCat(OpLowering &op, AtenCatOp args) {
  SmallVector<Value> parts = listInResultDtype(op, args.getTensors());
  if (parts.empty())
    return op.replaceWith(op.tensors.zeros(op.resultSizes(), op.resultDtype()));
  int64_t dim = op.dimension(args.getDim(), op.resultSizes().size());
  return op.replaceWith(op.tensors.concatenate(parts, dim, op.resultSizes()));
}

static LogicalResult lowerStack(OpLowering &op, AtenStackOp args) {
  int64_t dim = op.dimension(args.getDim(), op.resultSizes().size());
  SmallVector<int64_t> partSizes(op.resultSizes());
  partSizes[dim] = 1;
  SmallVector<Value> parts;
  for (auto [tensor, dtype] : llvm::zip(op.tensorList(args.getTensors()),
                                        op.tensorListDtypes(args.getTensors())))
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
        Value moved = arith::RemSIOp::create(nested, loc, b.toIndex(shift),
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

/// The end of each dimension moves to its front. The dims of an empty tensor
/// may be out of range, because torch doesn't check them.
static LogicalResult lowerRoll(OpLowering &op, AtenRollOp args) {
  SmallVector<NumberOperand> shifts = op.numbers(args.getShifts());
  SmallVector<int64_t> dims = op.integers(args.getDims());
  Value tensor = op.tensor(args.getSelf());
  if (llvm::is_contained(op.resultSizes(), 0))
    return op.replaceWith(tensor);
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
static LogicalResult padBy(OpLowering &op, AtenConstantPadNdOp args,
                           ArrayRef<NumberOperand> pad) {
  ArrayRef<int64_t> sizes = op.sizes(args.getSelf());
  NumberOperand value = op.number(args.getValue());
  auto type = op.resultType();
  Type index =
      IntegerType::get(op.builder.getContext(), 64, IntegerType::Signed);
  bool isEmpty = op.tensorType(args.getSelf()).getNumElements() == 0;
  Value result = op.tensors.fromIndices(
      type.getShape(), type.getElementType(),
      [&](OpBuilder &nested, Location loc, ValueRange indices) {
        IndexBuilder b(nested, loc);
        Value scalar = value.materialize(nested, loc, op.resultDtype());
        if (isEmpty)
          return scalar;
        SmallVector<Value> source(indices);
        Value zero = b.constant(0), isInside;
        for (size_t i = 0; i + 1 < pad.size(); i += 2) {
          size_t dim = sizes.size() - 1 - i / 2;
          Value low = b.toIndex(pad[i].materialize(nested, loc, index));
          Value from = b.sub(indices[dim], low);
          Value last = b.constant(sizes[dim] - 1);
          source[dim] = b.max(zero, b.min(from, last));
          Value fits = b.equal(from, source[dim]);
          isInside = isInside
                         ? arith::AndIOp::create(nested, loc, isInside, fits)
                               .getResult()
                         : fits;
        }
        Value element = b.extract(op.tensor(args.getSelf()), source);
        return isInside ? b.select(isInside, element, scalar) : element;
      });
  return op.replaceWith(result);
}

/// `pad` lists (front, back), starting with the last dimension; negative pads
/// crop.
static LogicalResult lowerConstantPad(OpLowering &op,
                                      AtenConstantPadNdOp args) {
  SmallVector<NumberOperand> numbers = op.numbers(args.getPad());
  if (llvm::any_of(numbers, [](auto &number) { return !number.constant; }))
    return padBy(op, args, numbers);
  SmallVector<int64_t> pad = op.integers(args.getPad());
  int64_t rank = op.rank(args.getSelf());
  SmallVector<int64_t> sizes(op.sizes(args.getSelf())), strides(rank, 1);
  SmallVector<int64_t> cut(rank, 0), offsets(rank, 0);
  for (size_t i = 0; i + 1 < pad.size(); i += 2) {
    int64_t dim = rank - 1 - static_cast<int64_t>(i / 2);
    cut[dim] = std::max<int64_t>(-pad[i], 0);
    offsets[dim] = std::max<int64_t>(pad[i], 0);
    sizes[dim] -= cut[dim] + std::max<int64_t>(-pad[i + 1], 0);
  }
  Value kept = op.tensors.slice(op.tensor(args.getSelf()), cut, sizes, strides);
  Value scalar = op.number(args.getValue())
                     .materialize(op.builder, op.loc, op.resultDtype());
  Value filled = op.tensors.fill(op.resultSizes(), scalar);
  return op.replaceWith(op.tensors.insert(kept, filled, offsets, strides));
}

/// tril and triu
template <bool isLower, typename OpTy>
static LogicalResult lowerTriangle(OpLowering &op, OpTy args) {
  int64_t rank = op.rank(args.getSelf());
  NumberOperand diagonal = op.number(args.getDiagonal());
  Type number =
      IntegerType::get(op.builder.getContext(), 64, IntegerType::Signed);
  Value result = op.tensors.elementwise(
      op.resultSizes(), op.resultType().getElementType(),
      op.tensor(args.getSelf()),
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

/// The source's elements with self's shape and dtype.
static LogicalResult lowerCopy(OpLowering &op, AtenCopyOp args) {
  Value source =
      op.tensors.convert(op.tensor(args.getSrc()), op.dtype(args.getSrc()),
                         op.dtype(args.getSelf()));
  return op.replaceWith(op.tensors.broadcast(source, op.resultSizes()));
}

void torch_ltc::populateDataMovementLowerings(LoweringTable &table) {
  addReshapes(table);
  table.add(lowerPermutation<AtenPermuteOp>);
  table.add(lowerPermutation<AtenTransposeIntOp>);
  table.add(lowerPermutation<AtenTOp>);
  table.add(lowerExpand);
  table.add(lowerRepeat);
  table.add(lowerCat);
  table.add(lowerStack);
  table.add(lowerRoll);
  table.add(lowerConstantPad);
  table.add(lowerTriangle<true, AtenTrilOp>);
  table.add(lowerTriangle<false, AtenTriuOp>);
  table.add(lowerCopy);
}
