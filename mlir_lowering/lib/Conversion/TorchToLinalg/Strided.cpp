//===- Strided.cpp - Data movement by index arithmetic --------------------===//
//
// Each result element is read from a computed position; backward and scatter
// ops write to computed positions, one element after the other.
//
//===----------------------------------------------------------------------===//

#include "IndexBuilder.h"
#include "OpLowering.h"
#include "StridedView.h"

#include "torch_ltc/Dialect/Ltc/SizeOrder.h"
#include "torch_ltc/Dialect/Torch/TorchOps_data_movement.h"
#include "torch_ltc/Dialect/Torch/TorchOps_pooling.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace mlir::torch_ltc;
using namespace mlir::torch_ltc::torch::ops;

/// An offset, computed from a dynamic scalar, that is added to the view's
/// constant offset; null if there is none.
using Beginning = Value;

/// The position in the flattened tensor of the view's element at `indices`.
static Value positionOf(IndexBuilder &b, const StridedView &view,
                        ValueRange indices, Beginning beginning) {
  Value position = b.linear(indices, view.strides, view.offset);
  return beginning ? b.add(position, beginning) : position;
}

/// The elements of `tensor` that the view refers to.
static Value readView(OpLowering &op, Value tensor, const StridedView &view,
                      Beginning beginning = {}) {
  Value flat = op.tensors.flatten(tensor);
  return op.tensors.fromIndices(
      view.sizes, op.resultType().getElementType(),
      [&](OpBuilder &nested, Location loc, ValueRange indices) {
        IndexBuilder b(nested, loc);
        return b.extract(flat, positionOf(b, view, indices, beginning));
      });
}

/// Returns `tensor` with the elements of `source` written to the view's
/// positions, or added to the elements there if `accumulate`.
static Value writeView(OpLowering &op, Value source, Value tensor,
                       const StridedView &view, bool accumulate,
                       Beginning beginning = {}) {
  Value flat = op.tensors.flatten(tensor);
  Value written = op.tensors.loop(
      view.sizes, flat,
      [&](OpBuilder &nested, Location loc, ValueRange indices, Value carried) {
        IndexBuilder b(nested, loc);
        Value position = positionOf(b, view, indices, beginning);
        Value scalar = b.extract(source, indices);
        if (accumulate) {
          ScalarBuilder s(nested, loc, op.resultDtype());
          scalar = s.add(b.extract(carried, position), scalar);
        }
        return b.insert(scalar, carried, position);
      });
  return op.tensors.reshape(
      written, cast<RankedTensorType>(tensor.getType()).getShape());
}

//===----------------------------------------------------------------------===//
// as_strided
//===----------------------------------------------------------------------===//

/// An offset that is a dynamic scalar is clamped so that the view lies inside
/// the tensor.
template <typename OpTy>
static StridedView readStrides(OpLowering &op, OpTy args,
                               Beginning &beginning) {
  if (!op.isParameter(args.getStorageOffset()))
    return readStrides(op, args);
  StridedView view{op.integers(args.getSize()), op.integers(args.getStride()),
                   0};
  int64_t elements = op.tensorType(args.getSelf()).getNumElements();
  int64_t last = elements - 1;
  for (auto [size, stride] : llvm::zip_equal(view.sizes, view.strides))
    last -= (size - 1) * stride;
  IndexBuilder b(op.builder, op.loc);
  beginning =
      b.fromElement(op.number(args.getStorageOffset()).value, elements, last);
  return view;
}

static LogicalResult lowerAsStrided(OpLowering &op, AtenAsStridedOp args) {
  Beginning beginning;
  StridedView view = readStrides(op, args, beginning);
  if (!view.isInBounds(op.tensorType(args.getSelf()).getNumElements()))
    return op.fail("it reads outside its tensor");
  return op.replaceWith(
      readView(op, op.tensor(args.getSelf()), view, beginning));
}

static LogicalResult lowerAsStridedScatter(OpLowering &op,
                                           AtenAsStridedScatterOp args) {
  Beginning beginning;
  StridedView view = readStrides(op, args, beginning);
  if (!view.isInBounds(op.tensorType(args.getSelf()).getNumElements()))
    return op.fail("it writes outside its tensor");
  return op.replaceWith(writeView(op, op.tensor(args.getSrc()),
                                  op.tensor(args.getSelf()), view, false,
                                  beginning));
}

//===----------------------------------------------------------------------===//
// Diagonals, which are the last dimension of a view
//===----------------------------------------------------------------------===//

/// The diagonal of a tensor of the sizes `sizes`; `diagonal` are the sizes of
/// the view. An offset that is a dynamic scalar is clamped to a valid diagonal.
template <typename OpTy>
static StridedView
readDiagonal(OpLowering &op, OpTy args, ArrayRef<int64_t> sizes,
             ArrayRef<int64_t> diagonal, Beginning &beginning) {
  if (!op.isParameter(args.getOffset()))
    return readDiagonal(op, args, sizes);
  int64_t dim1 = op.dimension(args.getDim1(), sizes.size());
  int64_t dim2 = op.dimension(args.getDim2(), sizes.size());
  SmallVector<int64_t> strides = rowMajorStrides(sizes);
  StridedView view{SmallVector<int64_t>(diagonal), {}, 0};
  for (auto [dim, stride] : llvm::enumerate(strides))
    if (static_cast<int64_t>(dim) != dim1 && static_cast<int64_t>(dim) != dim2)
      view.strides.push_back(stride);
  view.strides.push_back(strides[dim1] + strides[dim2]);
  int64_t length = diagonal.back();
  IndexBuilder b(op.builder, op.loc);
  Value offset = b.toIndex(op.number(args.getOffset()).value);
  offset = b.max(b.min(offset, b.constant(sizes[dim2] - length)),
                 b.constant(length - sizes[dim1]));
  Value zero = b.constant(0);
  Value right = b.mul(b.max(offset, zero), strides[dim2]);
  Value down = b.mul(b.max(b.sub(zero, offset), zero), strides[dim1]);
  beginning = b.add(right, down);
  return view;
}

static LogicalResult lowerDiagonal(OpLowering &op, AtenDiagonalOp args) {
  Beginning beginning;
  StridedView view = readDiagonal(op, args, op.sizes(args.getSelf()),
                                  op.resultSizes(), beginning);
  return op.replaceWith(
      readView(op, op.tensor(args.getSelf()), view, beginning));
}

static LogicalResult lowerDiagonalScatter(OpLowering &op,
                                          AtenDiagonalScatterOp args) {
  Beginning beginning;
  StridedView view = readDiagonal(op, args, op.sizes(args.getSelf()),
                                  op.sizes(args.getSrc()), beginning);
  return op.replaceWith(writeView(op, op.tensor(args.getSrc()),
                                  op.tensor(args.getSelf()), view, false,
                                  beginning));
}

static LogicalResult lowerDiagonalBackward(OpLowering &op,
                                           AtenDiagonalBackwardOp args) {
  Value zeros = op.tensors.zeros(op.resultSizes(), op.resultDtype());
  Beginning beginning;
  StridedView view = readDiagonal(op, args, op.resultSizes(),
                                  op.sizes(args.getGradOutput()), beginning);
  return op.replaceWith(writeView(op, op.tensor(args.getGradOutput()), zeros,
                                  view, false, beginning));
}

//===----------------------------------------------------------------------===//
// Sliding windows, whose elements are the last dimension of a view
//===----------------------------------------------------------------------===//

static LogicalResult lowerUnfold(OpLowering &op, AtenUnfoldOp args) {
  ArrayRef<int64_t> sizes = op.sizes(args.getSelf());
  int64_t dim = op.dimension(args.getDimension(), sizes.size());
  return op.replaceWith(
      readView(op, op.tensor(args.getSelf()),
               windowsOf(sizes, dim, op.integer(args.getSize()),
                         op.integer(args.getStep()))));
}

/// Like eager's kernel, adds only if windows overlap, and stores otherwise,
/// because 0.0 + -0.0 would lose the sign.
static LogicalResult lowerUnfoldBackward(OpLowering &op,
                                         AtenUnfoldBackwardOp args) {
  ArrayRef<int64_t> sizes = op.resultSizes();
  int64_t dim = op.dimension(args.getDim(), sizes.size());
  int64_t size = op.integer(args.getSize()), step = op.integer(args.getStep());
  bool overlaps = step < size;
  if (overlaps)
    assumeOrder(op.op, step, size);
  else
    assumeOrder(op.op, size - 1, step);
  Value zeros = op.tensors.zeros(sizes, op.resultDtype());
  return op.replaceWith(writeView(op, op.tensor(args.getGradIn()), zeros,
                                  windowsOf(sizes, dim, size, step), overlaps));
}

//===----------------------------------------------------------------------===//
// Reversed and repeated elements
//===----------------------------------------------------------------------===//

static LogicalResult lowerFlip(OpLowering &op, AtenFlipOp args) {
  ArrayRef<int64_t> sizes = op.sizes(args.getSelf());
  Value self = op.tensor(args.getSelf());
  if (sizes.empty() || ShapedType::getNumElements(sizes) == 0)
    return op.replaceWith(self);
  StridedView view{SmallVector<int64_t>(sizes), rowMajorStrides(sizes), 0};
  for (int64_t dim : op.integers(args.getDims())) {
    dim += dim < 0 ? static_cast<int64_t>(sizes.size()) : 0;
    view.offset += (sizes[dim] - 1) * view.strides[dim];
    view.strides[dim] = -view.strides[dim];
  }
  return op.replaceWith(readView(op, self, view));
}

/// The source position of an element of a padded tensor; `pad` lists (front,
/// back), starting with the last dimension.
template <bool isReflection>
static SmallVector<Value> mirrorSource(IndexBuilder &b, ValueRange indices,
                                       ArrayRef<int64_t> sizes,
                                       ArrayRef<int64_t> pad) {
  SmallVector<Value> source(indices);
  for (size_t i = 0; i + 1 < pad.size(); i += 2) {
    size_t dim = sizes.size() - 1 - i / 2;
    Value last = b.constant(sizes[dim] - 1), zero = b.constant(0);
    Value position = b.add(indices[dim], -pad[i]);
    if (isReflection) {
      position = b.max(position, b.sub(zero, position));
      Value mirrored = b.sub(b.constant(2 * (sizes[dim] - 1)), position);
      position = b.min(position, mirrored);
    }
    source[dim] = b.min(b.max(position, zero), last);
  }
  return source;
}

template <bool isReflection>
static LogicalResult mirrorPad(OpLowering &op, Value self,
                               ArrayRef<int64_t> pad) {
  Value result = op.tensors.fromIndices(
      op.resultSizes(), op.resultType().getElementType(),
      [&](OpBuilder &nested, Location loc, ValueRange indices) {
        IndexBuilder b(nested, loc);
        return b.extract(op.tensor(self), mirrorSource<isReflection>(
                                              b, indices, op.sizes(self), pad));
      });
  return op.replaceWith(result);
}

/// reflection_pad and replication_pad
template <bool isReflection, typename OpTy>
static LogicalResult lowerMirrorPad(OpLowering &op, OpTy args) {
  return mirrorPad<isReflection>(op, args.getSelf(),
                                 op.integers(args.getPadding()));
}

/// Each source element gets the sum of its copies' gradients.
template <bool isReflection>
static LogicalResult mirrorPadBackward(OpLowering &op, Value gradOutput,
                                       ArrayRef<int64_t> pad) {
  Type compute = computeDtypeOf(op.resultDtype());
  Value zeros = op.tensors.zeros(op.resultSizes(), compute);
  if (op.resultType().getNumElements() == 0)
    return op.replaceWith(op.tensors.zeros(op.resultSizes(), op.resultDtype()));
  Value sum = op.tensors.loop(
      op.sizes(gradOutput), zeros,
      [&](OpBuilder &nested, Location loc, ValueRange indices, Value carried) {
        IndexBuilder b(nested, loc);
        ScalarBuilder s(nested, loc, compute);
        SmallVector<Value> target =
            mirrorSource<isReflection>(b, indices, op.resultSizes(), pad);
        Value gradient = s.convert(b.extract(op.tensor(gradOutput), indices),
                                   op.dtype(gradOutput), compute);
        Value total = s.add(b.extract(carried, target), gradient);
        return b.insert(total, carried, target);
      });
  return op.replaceWith(op.tensors.convert(sum, compute, op.resultDtype()));
}

template <bool isReflection, typename OpTy>
static LogicalResult lowerMirrorPadBackward(OpLowering &op, OpTy args) {
  return mirrorPadBackward<isReflection>(op, args.getGradOutput(),
                                         op.integers(args.getPadding()));
}

//===----------------------------------------------------------------------===//
// Nearest neighbors
//===----------------------------------------------------------------------===//

namespace {
/// One dimension of a resized image: each row of the result is a copy of a
/// source row, and later rows have the same or later sources. Kernels look rows
/// up in tables. If the sizes or the scale are unknown, a kernel computes the
/// rows instead.
class NearestRows {
public:
  /// `scale`: an argument of the op, a float or none.
  NearestRows(OpLowering &op, int64_t input, int64_t output, Value scale)
      : op(op), input(input), output(output),
        isComputed(isForAllSizes(op.op) || op.isParameter(scale)) {
    if (!isComputed)
      given = op.optionalFloating(scale);
    else
      addFactors(scale);
  }

  /// `addSources` creates the table that `source` reads, and `addFirstCopies`
  /// the one that `firstCopy` reads. They must be called before the kernel's
  /// body is built.
  void addSources() {
    if (!isComputed)
      table = positionTable(nearestSources(input, output, given));
  }
  void addFirstCopies() {
    if (isComputed)
      return;
    SmallVector<int64_t> first;
    SmallVector<int64_t> sources = nearestSources(input, output, given);
    for (int64_t row = 0; row <= input; ++row)
      first.push_back(llvm::lower_bound(sources, row) - sources.begin());
    table = positionTable(first);
  }

  /// The source row of a row of the result.
  Value source(IndexBuilder &b, Value row) const {
    if (table)
      return b.fromElement(b.extract(table, row), input);
    return b.min(multiplied(b, row, toSource), b.constant(input - 1));
  }

  /// The index of the first result row that copies source row `row` or a later
  /// one. If there is none (`row` == input), the number of result rows.
  Value firstCopy(IndexBuilder &b, Value row) const {
    if (table)
      return b.fromElement(b.extract(table, row), output + 1);
    // The rounded product may differ from the first copy, so search from two
    // rows before the product.
    Value zero = b.constant(0), last = b.constant(output);
    Value copy = b.add(multiplied(b, row, toResult), -2);
    copy = b.min(b.max(copy, zero), last);
    for (int step = 0; step < 4; ++step) {
      Value isBefore = b.less(multiplied(b, copy, toSource), row);
      copy = b.min(b.select(isBefore, b.add(copy, 1), copy), last);
    }
    return b.select(b.less(row, b.constant(input)), copy, last);
  }

private:
  /// Emits `toSource` and `toResult`. A scale that isn't positive is ignored,
  /// as in `compute_scales_value` (aten/src/ATen/native/UpSample.h).
  void addFactors(Value scale) {
    ScalarBuilder narrow(op.builder, op.loc, op.builder.getF32Type());
    toSource = narrow.constant(nearestScale(input, output, {}));
    toResult = narrow.constant(nearestScale(output, input, {}));
    if (op.isNone(scale))
      return;
    ScalarBuilder wide(op.builder, op.loc, op.builder.getF64Type());
    Value given = op.number(scale).materialize(op.builder, op.loc, wide.dtype);
    Value isGiven = wide.compare(Comparison::gt, given, wide.constant(0));
    auto orDefault = [&](Value factor, Value byDefault) {
      factor = narrow.convert(factor, wide.dtype, narrow.dtype);
      return narrow.select(isGiven, factor, byDefault);
    };
    toSource = orDefault(wide.div(wide.constant(1), given), toSource);
    toResult = orDefault(given, toResult);
  }

  Value positionTable(ArrayRef<int64_t> positions) {
    auto type =
        RankedTensorType::get(positions.size(), op.builder.getI64Type());
    return arith::ConstantOp::create(op.builder, op.loc,
                                     DenseElementsAttr::get(type, positions));
  }

  /// floor(row * factor), computed in float32 as PyTorch does.
  static Value multiplied(IndexBuilder &b, Value row, Value factor) {
    Type integer = b.builder.getI64Type(), index = b.builder.getIndexType();
    ScalarBuilder s(b.builder, b.loc, b.builder.getF32Type());
    Value number =
        arith::SIToFPOp::create(b.builder, b.loc, s.dtype, b.toInteger(row));
    number = s.unary<math::FloorOp>(s.mul(number, factor));
    number = arith::FPToSIOp::create(b.builder, b.loc, integer, number);
    return arith::IndexCastOp::create(b.builder, b.loc, index, number);
  }

  OpLowering &op;
  int64_t input, output;
  bool isComputed;
  std::optional<double> given; // a constant scale
  Value table;                 // unless the rows are computed
  Value toSource, toResult;    // float32 factors; null if there is a table
};
} // namespace

static LogicalResult lowerUpsampleNearest(OpLowering &op,
                                          AtenUpsampleNearest2dOp args) {
  ArrayRef<int64_t> in = op.sizes(args.getSelf()), out = op.resultSizes();
  NearestRows rows(op, in[2], out[2], args.getScalesH());
  NearestRows columns(op, in[3], out[3], args.getScalesW());
  rows.addSources();
  columns.addSources();
  Value result = op.tensors.fromIndices(
      out, op.resultType().getElementType(),
      [&](OpBuilder &nested, Location loc, ValueRange indices) {
        IndexBuilder b(nested, loc);
        Value row = rows.source(b, indices[2]);
        Value column = columns.source(b, indices[3]);
        return b.extract(op.tensor(args.getSelf()),
                         {indices[0], indices[1], row, column});
      });
  return op.replaceWith(result);
}

/// Each element sums the gradients of its copies, which are neighbors, so
/// elements are independent of each other.
static LogicalResult
lowerUpsampleNearestBackward(OpLowering &op,
                             AtenUpsampleNearest2dBackwardOp args) {
  Value gradOutput = args.getGradOutput();
  ArrayRef<int64_t> in = op.resultSizes(), out = op.sizes(gradOutput);
  Type dtype = op.resultDtype(), compute = computeDtypeOf(dtype);
  SmallVector<NearestRows, 2> rows;
  rows.emplace_back(op, in[2], out[2], args.getScalesH());
  rows.emplace_back(op, in[3], out[3], args.getScalesW());
  for (NearestRows &dim : rows)
    dim.addFirstCopies();
  Value result = op.tensors.fromIndices(
      in, op.resultType().getElementType(),
      [&](OpBuilder &nested, Location loc, ValueRange indices) {
        IndexBuilder b(nested, loc);
        ScalarBuilder s(nested, loc, compute);
        SmallVector<Value> lows, highs, steps(2, b.constant(1));
        for (int64_t dim : {2, 3}) {
          lows.push_back(rows[dim - 2].firstCopy(b, indices[dim]));
          highs.push_back(rows[dim - 2].firstCopy(b, b.add(indices[dim], 1)));
        }
        auto nest = scf::buildLoopNest(
            nested, loc, lows, highs, steps, {s.integer(0)},
            [&](OpBuilder &inner, Location loc, ValueRange copy,
                ValueRange carried) {
              IndexBuilder b(inner, loc);
              ScalarBuilder s(inner, loc, compute);
              Value gradient =
                  b.extract(op.tensor(gradOutput),
                            {indices[0], indices[1], copy[0], copy[1]});
              gradient = s.convert(gradient, op.dtype(gradOutput), compute);
              return scf::ValueVector{s.add(carried[0], gradient)};
            });
        return s.convert(nest.results[0], compute, dtype);
      });
  return op.replaceWith(result);
}

void torch_ltc::populateStridedLowerings(LoweringTable &table) {
  table.add(lowerAsStrided);
  table.add(lowerAsStridedScatter);
  table.add(lowerDiagonal);
  table.add(lowerDiagonalScatter);
  table.add(lowerDiagonalBackward);
  table.add(lowerUnfold);
  table.add(lowerUnfoldBackward);
  table.add(lowerFlip);
  table.add(lowerMirrorPad<true, AtenReflectionPad1dOp>);
  table.add(lowerMirrorPad<true, AtenReflectionPad2dOp>);
  table.add(lowerMirrorPad<true, AtenReflectionPad3dOp>);
  table.add(lowerMirrorPadBackward<true, AtenReflectionPad1dBackwardOp>);
  table.add(lowerMirrorPadBackward<true, AtenReflectionPad2dBackwardOp>);
  table.add(lowerMirrorPadBackward<true, AtenReflectionPad3dBackwardOp>);
  table.add(lowerMirrorPad<false, AtenReplicationPad1dOp>);
  table.add(lowerMirrorPad<false, AtenReplicationPad2dOp>);
  table.add(lowerMirrorPad<false, AtenReplicationPad3dOp>);
  table.add(lowerMirrorPadBackward<false, AtenReplicationPad1dBackwardOp>);
  table.add(lowerMirrorPadBackward<false, AtenReplicationPad2dBackwardOp>);
  table.add(lowerMirrorPadBackward<false, AtenReplicationPad3dBackwardOp>);
  table.add(lowerUpsampleNearest);
  table.add(lowerUpsampleNearestBackward);
}
