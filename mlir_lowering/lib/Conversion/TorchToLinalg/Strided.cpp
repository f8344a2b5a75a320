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

#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace mlir::torch_ltc;

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

/// Reads the arguments size, stride, storage_offset, which begin at position
/// `first`. An offset that is a dynamic scalar is clamped so that the view lies
/// inside the tensor.
static StridedView readStrides(OpLowering &op, unsigned first,
                               Beginning &beginning) {
  if (!op.isParameter(first + 2))
    return torch_ltc::readStrides(op, first);
  StridedView view{op.integers(first), op.integers(first + 1), 0};
  int64_t last = op.tensorType(0).getNumElements() - 1;
  for (auto [size, stride] : llvm::zip_equal(view.sizes, view.strides))
    last -= (size - 1) * stride;
  IndexBuilder b(op.builder, op.loc);
  beginning = b.fromElement(op.number(first + 2).value,
                            op.tensorType(0).getNumElements(), last);
  return view;
}

static LogicalResult lowerAsStrided(OpLowering &op) {
  Beginning beginning;
  StridedView view = readStrides(op, 1, beginning);
  if (!view.isInBounds(op.tensorType(0).getNumElements()))
    return op.fail("it reads outside its tensor");
  return op.replaceWith(readView(op, op.tensor(0), view, beginning));
}

/// as_strided_scatter(self, src, size, stride, storage_offset)
static LogicalResult lowerAsStridedScatter(OpLowering &op) {
  Beginning beginning;
  StridedView view = readStrides(op, 2, beginning);
  if (!view.isInBounds(op.tensorType(0).getNumElements()))
    return op.fail("it writes outside its tensor");
  return op.replaceWith(
      writeView(op, op.tensor(1), op.tensor(0), view, false, beginning));
}

//===----------------------------------------------------------------------===//
// Diagonals: arguments offset, dim1, dim2; the diagonal is the last dimension
//===----------------------------------------------------------------------===//

/// Reads the arguments offset, dim1, dim2, which begin at position `first`, for
/// a tensor of the sizes `sizes`; `diagonal` are the sizes of the view. An
/// offset that is a dynamic scalar is clamped to a valid diagonal.
static StridedView readDiagonal(OpLowering &op, ArrayRef<int64_t> sizes,
                                unsigned first, ArrayRef<int64_t> diagonal,
                                Beginning &beginning) {
  if (!op.isParameter(first))
    return torch_ltc::readDiagonal(op, sizes, first);
  int64_t dim1 = op.dimension(first + 1, sizes.size());
  int64_t dim2 = op.dimension(first + 2, sizes.size());
  SmallVector<int64_t> strides = rowMajorStrides(sizes);
  StridedView view{SmallVector<int64_t>(diagonal), {}, 0};
  for (auto [dim, stride] : llvm::enumerate(strides))
    if (static_cast<int64_t>(dim) != dim1 && static_cast<int64_t>(dim) != dim2)
      view.strides.push_back(stride);
  view.strides.push_back(strides[dim1] + strides[dim2]);
  int64_t length = diagonal.back();
  IndexBuilder b(op.builder, op.loc);
  Value offset = arith::IndexCastOp::create(
      op.builder, op.loc, op.builder.getIndexType(), op.number(first).value);
  offset = b.max(b.min(offset, b.constant(sizes[dim2] - length)),
                 b.constant(length - sizes[dim1]));
  Value zero = b.constant(0);
  Value right = b.mul(b.max(offset, zero), strides[dim2]);
  Value down = b.mul(b.max(b.sub(zero, offset), zero), strides[dim1]);
  beginning = b.add(right, down);
  return view;
}

static LogicalResult lowerDiagonal(OpLowering &op) {
  Beginning beginning;
  StridedView view =
      readDiagonal(op, op.sizes(0), 1, op.resultSizes(), beginning);
  return op.replaceWith(readView(op, op.tensor(0), view, beginning));
}

/// diagonal_scatter(self, src, offset, dim1, dim2)
static LogicalResult lowerDiagonalScatter(OpLowering &op) {
  Beginning beginning;
  StridedView view = readDiagonal(op, op.sizes(0), 2, op.sizes(1), beginning);
  return op.replaceWith(
      writeView(op, op.tensor(1), op.tensor(0), view, false, beginning));
}

/// diagonal_backward(grad_output, input_sizes, offset, dim1, dim2)
static LogicalResult lowerDiagonalBackward(OpLowering &op) {
  Value zeros = op.tensors.zeros(op.resultSizes(), op.resultDtype());
  Beginning beginning;
  StridedView view =
      readDiagonal(op, op.resultSizes(), 2, op.sizes(0), beginning);
  return op.replaceWith(
      writeView(op, op.tensor(0), zeros, view, false, beginning));
}

//===----------------------------------------------------------------------===//
// Sliding windows: arguments dim, size, step; the window is the last dimension
//===----------------------------------------------------------------------===//

static LogicalResult lowerUnfold(OpLowering &op) {
  return op.replaceWith(
      readView(op, op.tensor(0), readWindows(op, op.sizes(0), 1)));
}

/// unfold_backward(grad_in, input_sizes, dim, size, step)
///
/// Like eager's kernel, adds only if windows overlap, and stores otherwise,
/// because 0.0 + -0.0 would lose the sign.
static LogicalResult lowerUnfoldBackward(OpLowering &op) {
  int64_t size = op.integer(3), step = op.integer(4);
  bool overlaps = step < size;
  if (overlaps)
    assumeOrder(op.op, step, size);
  else
    assumeOrder(op.op, size - 1, step);
  Value zeros = op.tensors.zeros(op.resultSizes(), op.resultDtype());
  return op.replaceWith(writeView(
      op, op.tensor(0), zeros, readWindows(op, op.resultSizes(), 2), overlaps));
}

//===----------------------------------------------------------------------===//
// Reversed and repeated elements
//===----------------------------------------------------------------------===//

/// flip(self, dims)
static LogicalResult lowerFlip(OpLowering &op) {
  ArrayRef<int64_t> sizes = op.sizes(0);
  if (sizes.empty() || op.tensorType(0).getNumElements() == 0)
    return op.replaceWith(op.tensor(0));
  StridedView view{SmallVector<int64_t>(sizes), rowMajorStrides(sizes), 0};
  for (int64_t dim : op.integers(1)) {
    dim += dim < 0 ? op.rank(0) : 0;
    view.offset += (sizes[dim] - 1) * view.strides[dim];
    view.strides[dim] = -view.strides[dim];
  }
  return op.replaceWith(readView(op, op.tensor(0), view));
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

/// reflection_pad and replication_pad: (self, padding)
template <bool isReflection>
static LogicalResult lowerMirrorPad(OpLowering &op) {
  SmallVector<int64_t> pad = op.integers(1);
  Value result = op.tensors.fromIndices(
      op.resultSizes(), op.resultType().getElementType(),
      [&](OpBuilder &nested, Location loc, ValueRange indices) {
        IndexBuilder b(nested, loc);
        return b.extract(op.tensor(0), mirrorSource<isReflection>(
                                           b, indices, op.sizes(0), pad));
      });
  return op.replaceWith(result);
}

/// Gradients of reflection_pad and replication_pad: (grad_output, self,
/// padding). Each source element gets the sum of its copies' gradients.
template <bool isReflection>
static LogicalResult lowerMirrorPadBackward(OpLowering &op) {
  SmallVector<int64_t> pad = op.integers(2);
  Type compute = computeDtypeOf(op.resultDtype());
  Value zeros = op.tensors.zeros(op.resultSizes(), compute);
  if (op.resultType().getNumElements() == 0)
    return op.replaceWith(op.tensors.zeros(op.resultSizes(), op.resultDtype()));
  Value sum = op.tensors.loop(
      op.sizes(0), zeros,
      [&](OpBuilder &nested, Location loc, ValueRange indices, Value carried) {
        IndexBuilder b(nested, loc);
        ScalarBuilder s(nested, loc, compute);
        SmallVector<Value> target =
            mirrorSource<isReflection>(b, indices, op.resultSizes(), pad);
        Value gradient =
            s.convert(b.extract(op.tensor(0), indices), op.dtype(0), compute);
        Value total = s.add(b.extract(carried, target), gradient);
        return b.insert(total, carried, target);
      });
  return op.replaceWith(op.tensors.convert(sum, compute, op.resultDtype()));
}

//===----------------------------------------------------------------------===//
// Nearest neighbors: (self or grad_output, ..., scales_h, scales_w)
//===----------------------------------------------------------------------===//

namespace {
/// One dimension of a resized image: each row of the result is a copy of a
/// source row, and later rows have the same or later sources. Kernels look rows
/// up in tables. If the sizes or the scale are unknown, a kernel computes the
/// rows instead.
class NearestRows {
public:
  /// `scale`: the position of the op's operand, a float or none.
  NearestRows(OpLowering &op, int64_t input, int64_t output, unsigned scale)
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

  /// The first row of the result that is a copy of source row `row` or of a
  /// later one; for `row` == input, the number of rows of the result.
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
  void addFactors(unsigned scale) {
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

/// upsample_nearest2d(self, output_size, scales_h, scales_w)
static LogicalResult lowerUpsampleNearest(OpLowering &op) {
  ArrayRef<int64_t> in = op.sizes(0), out = op.resultSizes();
  NearestRows rows(op, in[2], out[2], 2);
  NearestRows columns(op, in[3], out[3], 3);
  rows.addSources();
  columns.addSources();
  Value result = op.tensors.fromIndices(
      out, op.resultType().getElementType(),
      [&](OpBuilder &nested, Location loc, ValueRange indices) {
        IndexBuilder b(nested, loc);
        Value row = rows.source(b, indices[2]);
        Value column = columns.source(b, indices[3]);
        return b.extract(op.tensor(0), {indices[0], indices[1], row, column});
      });
  return op.replaceWith(result);
}

/// upsample_nearest2d_backward(grad_output, output_size, input_size, scales_h,
/// scales_w). Each element sums the gradients of its copies, which are
/// neighbors, so elements are independent of each other.
static LogicalResult lowerUpsampleNearestBackward(OpLowering &op) {
  ArrayRef<int64_t> in = op.resultSizes(), out = op.sizes(0);
  Type dtype = op.resultDtype(), compute = computeDtypeOf(dtype);
  SmallVector<NearestRows, 2> rows;
  for (int64_t dim : {2, 3}) {
    rows.emplace_back(op, in[dim], out[dim], dim + 1);
    rows.back().addFirstCopies();
  }
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
              Value gradient = b.extract(
                  op.tensor(0), {indices[0], indices[1], copy[0], copy[1]});
              gradient = s.convert(gradient, op.dtype(0), compute);
              return scf::ValueVector{s.add(carried[0], gradient)};
            });
        return s.convert(nest.results[0], compute, dtype);
      });
  return op.replaceWith(result);
}

void torch_ltc::populateStridedLowerings(LoweringTable &table) {
  table.add("aten.as_strided", lowerAsStrided, {3});
  table.add("aten.as_strided_scatter", lowerAsStridedScatter, {4});
  table.add("aten.diagonal", lowerDiagonal, {1});
  table.add("aten.diagonal_scatter", lowerDiagonalScatter, {2});
  table.add("aten.diagonal_backward", lowerDiagonalBackward, {2});
  table.add("aten.unfold", lowerUnfold);
  table.add("aten.unfold_backward", lowerUnfoldBackward);
  table.add("aten.flip", lowerFlip);
  for (StringRef dims : {"1d", "2d", "3d"}) {
    std::string reflection = ("aten.reflection_pad" + dims).str();
    std::string replication = ("aten.replication_pad" + dims).str();
    table.add(reflection, lowerMirrorPad<true>);
    table.add(replication, lowerMirrorPad<false>);
    table.add(reflection + "_backward", lowerMirrorPadBackward<true>);
    table.add(replication + "_backward", lowerMirrorPadBackward<false>);
  }
  table.add("aten.upsample_nearest2d", lowerUpsampleNearest, {2, 3});
  table.add("aten.upsample_nearest2d_backward", lowerUpsampleNearestBackward,
            {3, 4});
}
