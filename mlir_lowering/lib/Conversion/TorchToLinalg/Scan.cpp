//===- Scan.cpp - Prefix sums and selection along a dimension -------------===//
//
// Lowers ops that depend on the order of elements along a dimension. They
// become serial loops over this dimension, or a binary search.
//
//===----------------------------------------------------------------------===//

#include "IndexBuilder.h"
#include "OpLowering.h"

#include "torch_ltc/Dialect/Ltc/SizeOrder.h"
#include "torch_ltc/Dialect/Torch/TorchOps_indexing.h"
#include "torch_ltc/Dialect/Torch/TorchOps_reduction.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace mlir::torch_ltc;
using namespace mlir::torch_ltc::torch::ops;

//===----------------------------------------------------------------------===//
// Scans
//===----------------------------------------------------------------------===//

/// Emits the step of a scan for position `line` of the scanned dimension:
/// returns the new accumulators, computed from an element of the operand and
/// the old accumulators. The accumulators are stored in separate tensors, in
/// which the dimension has size 1, so that 16-bit floats aren't rounded at
/// every step. `finish` computes an element of a result from its accumulator.
using ScanBody = function_ref<SmallVector<Value>(
    OpBuilder &, Location, Value element, ValueRange accumulators, Value line)>;
using ScanFinish =
    function_ref<Value(OpBuilder &, Location, Value accumulator)>;

static SmallVector<Value> scan(OpLowering &op, Value self, Value dimension,
                               ArrayRef<Value> starts,
                               ArrayRef<Type> resultTypes, ScanBody body,
                               ScanFinish finish) {
  int64_t dim = op.dimension(dimension, op.rank(self));
  SmallVector<int64_t> sizes(op.sizes(self));
  SmallVector<int64_t> lineSizes = sizes;
  lineSizes[dim] = 1;
  IndexBuilder outer(op.builder, op.loc);
  size_t count = starts.size();
  SmallVector<Value> carriedIn;
  for (Type type : resultTypes)
    carriedIn.push_back(op.tensors.empty(sizes, type));
  for (Value start : starts)
    carriedIn.push_back(op.tensors.fill(lineSizes, start));
  auto loop = scf::ForOp::create(
      op.builder, op.loc, outer.constant(0), outer.constant(sizes[dim]),
      outer.constant(1), carriedIn,
      [&](OpBuilder &nested, Location loc, Value step, ValueRange carried) {
        SmallVector<OpFoldResult> offsets(sizes.size(), nested.getIndexAttr(0));
        SmallVector<OpFoldResult> ones(sizes.size(), nested.getIndexAttr(1));
        offsets[dim] = step;
        auto lengths = getAsIndexOpFoldResult(nested.getContext(), lineSizes);
        TensorBuilder tensors(nested, loc);
        Value line = tensor::ExtractSliceOp::create(
            nested, loc, op.tensor(self), offsets, lengths, ones);
        SmallVector<Value> destinations(carried.drop_front(count));
        for (Type type : resultTypes)
          destinations.push_back(tensors.empty(lineSizes, type));
        SmallVector<Value> updated = tensors.update(
            destinations, line,
            [&](OpBuilder &b, Location loc, ValueRange inputs) {
              SmallVector<Value> values =
                  body(b, loc, inputs[0], inputs.slice(1, count), step);
              for (size_t i = 0; i < count; ++i)
                values.push_back(finish(b, loc, values[i]));
              return values;
            });
        SmallVector<Value> next;
        for (size_t i = 0; i < count; ++i)
          next.push_back(tensor::InsertSliceOp::create(
              nested, loc, updated[count + i], carried[i], offsets, lengths,
              ones));
        next.append(updated.begin(), updated.begin() + count);
        scf::YieldOp::create(nested, loc, next);
      });
  return llvm::to_vector(ValueRange(loop.getResults()).take_front(count));
}

/// Combines the accumulator of a scan with the next element.
using Combine = Value (*)(ScalarBuilder &, Value sum, Value element);
using Start = Value (*)(ScalarBuilder &);

/// The dtype of eager's accumulators. In float32, a sum of a million numbers
/// would be accurate to five digits, and a product that overflowed would stay
/// infinite.
static Type accumulatorOf(Type dtype) {
  return dtype.isF32() ? Float64Type::get(dtype.getContext())
                       : computeDtypeOf(dtype);
}

template <Combine combine, Start start, typename OpTy>
static LogicalResult lowerScan(OpLowering &op, OpTy args) {
  Value self = args.getSelf();
  Type from = op.dtype(self), to = op.resultDtype();
  if (op.rank(self) == 0)
    return op.replaceWith(op.tensors.convert(op.tensor(self), from, to));
  Type accumulator = accumulatorOf(to);
  ScalarBuilder outer(op.builder, op.loc, accumulator);
  return op.replaceWith(scan(
      op, self, args.getDim(), start(outer), storageTypeOf(to),
      [&](OpBuilder &b, Location loc, Value element, ValueRange sums, Value) {
        ScalarBuilder s(b, loc, accumulator);
        Value converted =
            s.convert(s.convert(element, from, to), to, accumulator);
        return SmallVector<Value>{combine(s, sums[0], converted)};
      },
      [&](OpBuilder &b, Location loc, Value sum) {
        return ScalarBuilder(b, loc, accumulator).convert(sum, accumulator, to);
      }));
}

static Value startAtZero(ScalarBuilder &s) { return s.integer(0); }
static Value startAtOne(ScalarBuilder &s) { return s.integer(1); }
static Value startAtLowest(ScalarBuilder &s) { return s.lowest(); }

static Value addNext(ScalarBuilder &s, Value sum, Value element) {
  return s.add(sum, element);
}
static Value multiplyNext(ScalarBuilder &s, Value product, Value element) {
  return s.mul(product, element);
}

/// log(exp(a) + exp(b)) with the larger exponential factored out; the result
/// for two equal infinities is that infinity.
static Value logAddExp(ScalarBuilder &s, Value a, Value b) {
  Value low = s.minimum(a, b), high = s.maximum(a, b);
  Value rest = s.unary<math::Log1pOp>(s.exp(s.sub(low, high)));
  Value isInfinite = s.compare(Comparison::eq, s.abs(low), s.highest());
  Value isEqual = s.compare(Comparison::eq, low, high);
  return s.select(s.logicalAnd(isInfinite, isEqual), high, s.add(high, rest));
}

static LogicalResult lowerLogcumsumexp(OpLowering &op,
                                       AtenLogcumsumexpOp args) {
  if (!isa<FloatType>(op.resultDtype()))
    return op.fail("it is only defined for floats");
  return lowerScan<logAddExp, startAtLowest>(op, args);
}

/// cummax and cummin: of equal elements, the last one gives the position; NaN
/// is propagated.
template <bool isMax, typename OpTy>
static LogicalResult lowerScanExtreme(OpLowering &op, OpTy args) {
  Value self = args.getSelf();
  Type dtype = op.dtype(self), indexType = op.builder.getI64Type();
  if (op.rank(self) == 0)
    return op.replaceWith(
        {op.tensor(self), op.tensors.zeros({}, op.resultDtype(1))});
  ScalarBuilder outer(op.builder, op.loc, dtype);
  Value zero = arith::ConstantOp::create(op.builder, op.loc,
                                         op.builder.getI64IntegerAttr(0));
  return op.replaceWith(scan(
      op, self, args.getDim(), {isMax ? outer.lowest() : outer.highest(), zero},
      {storageTypeOf(dtype), indexType},
      [&](OpBuilder &b, Location loc, Value element, ValueRange best,
          Value line) {
        ScalarBuilder s(b, loc, dtype);
        Value better = s.compare(isMax ? Comparison::ge : Comparison::le,
                                 element, best[0]);
        if (s.isFloat())
          better = s.logicalOr(better, s.isNan(element));
        Value position = IndexBuilder(b, loc).toInteger(line);
        return SmallVector<Value>{s.select(better, element, best[0]),
                                  s.select(better, position, best[1])};
      },
      [](OpBuilder &, Location, Value best) { return best; }));
}

//===----------------------------------------------------------------------===//
// bucketize, searchsorted
//===----------------------------------------------------------------------===//

namespace {
// The searched tensor. Each of its lines along the last dimension is sorted, or
// `order` sorts it.
struct SortedLines {
  Value tensor;
  ArrayRef<int64_t> sizes;
  Type dtype;
  /// The positions that sort each line; null if the lines are sorted.
  Value order;
  /// Whether elements equal to the searched value count as less.
  bool right;
};
} // namespace

/// Whether the element at `position` of a line is less than x (with `right`:
/// not greater). True if x or the element is a NaN.
static Value isBelow(ScalarBuilder &s, const SortedLines &lines,
                     ValueRange line, Value position, Value x) {
  IndexBuilder b(s.builder, s.loc);
  SmallVector<Value> place(line);
  place.push_back(position);
  if (lines.order)
    place.back() =
        b.fromElement(b.extract(lines.order, place), lines.sizes.back());
  Value element =
      s.convert(b.extract(lines.tensor, place), lines.dtype, s.dtype);
  Value above = lines.right ? s.compare(Comparison::lt, x, element)
                            : s.compare(Comparison::le, x, element);
  return s.logicalNot(above);
}

/// The number of elements of a line that are below x, found by binary search.
/// `line` has the indices of all dimensions but the last.
static Value countBelow(ScalarBuilder &s, const SortedLines &lines,
                        ValueRange line, Value x) {
  IndexBuilder b(s.builder, s.loc);
  int64_t count = lines.sizes.back();
  Value low = b.constant(0);
  // The first `low` elements are known to be below x.
  for (int64_t step = llvm::PowerOf2Ceil(count + 1) / 2; step > 0; step /= 2) {
    Value next = b.add(low, step);
    Value inRange = b.less(next, b.constant(count + 1));
    Value position = b.select(inRange, b.add(next, -1), b.constant(0));
    Value below = s.logicalAnd(inRange, isBelow(s, lines, line, position, x));
    low = s.select(below, next, low);
  }
  return low;
}

/// Like `countBelow`, but emits a loop, because in a general program the number
/// of steps depends on the size.
static Value countBelowForAllSizes(ScalarBuilder &s, const SortedLines &lines,
                                   ValueRange line, Value x) {
  IndexBuilder b(s.builder, s.loc);
  // The state is (low, rest); the result is in [low, low + rest].
  auto loop = scf::WhileOp::create(
      s.builder, s.loc,
      TypeRange{b.constant(0).getType(), b.constant(0).getType()},
      ValueRange{b.constant(0), b.constant(lines.sizes.back())},
      [&](OpBuilder &nested, Location loc, ValueRange state) {
        IndexBuilder inner(nested, loc);
        scf::ConditionOp::create(
            nested, loc, inner.less(inner.constant(0), state[1]), state);
      },
      [&](OpBuilder &nested, Location loc, ValueRange state) {
        IndexBuilder inner(nested, loc);
        ScalarBuilder scalar(nested, loc, s.dtype);
        Value half = inner.floorDiv(state[1], 2);
        Value middle = inner.add(state[0], half);
        Value below = isBelow(scalar, lines, line, middle, x);
        Value upper = inner.sub(inner.add(state[1], -1), half);
        scf::YieldOp::create(
            nested, loc,
            ValueRange{inner.select(below, inner.add(middle, 1), state[0]),
                       inner.select(below, upper, half)});
      });
  return loop.getResult(0);
}

/// Looks up in `lines` the elements of the argument `values`, or the number.
static LogicalResult lowerSearch(OpLowering &op, const SortedLines &lines,
                                 Value values) {
  bool isNumber = !op.isTensor(values);
  Type from = isNumber ? op.number(values).dtype : op.dtype(values);
  Type common = promoteDtypes(from, lines.dtype);
  if (lines.sizes.back() == 0)
    return op.replaceWith(op.tensors.zeros(op.resultSizes(), op.resultDtype()));
  SmallVector<Value> inputs;
  if (!isNumber)
    inputs.push_back(op.tensor(values));
  Type type = op.resultType().getElementType();
  Value result = op.tensors.elementwise(
      op.resultSizes(), type, inputs,
      [&](OpBuilder &nested, Location loc, ValueRange elements) {
        ScalarBuilder s(nested, loc, common);
        Value x = isNumber ? op.number(values).materialize(nested, loc, common)
                           : s.convert(elements[0], from, common);
        SmallVector<Value> line;
        for (size_t dim = 0; dim + 1 < lines.sizes.size(); ++dim)
          line.push_back(linalg::IndexOp::create(nested, loc, dim));
        Value count = isForAllSizes(op.op)
                          ? countBelowForAllSizes(s, lines, line, x)
                          : countBelow(s, lines, line, x);
        return SmallVector<Value>{
            arith::IndexCastOp::create(nested, loc, type, count)};
      })[0];
  return op.replaceWith(result);
}

static LogicalResult lowerBucketize(OpLowering &op,
                                    AtenBucketizeTensorOp args) {
  Value lines = args.getBoundaries();
  return lowerSearch(op,
                     {op.tensor(lines), op.sizes(lines), op.dtype(lines),
                      /*order=*/Value(), op.boolean(args.getRight())},
                     args.getSelf());
}

template <typename OpTy>
static LogicalResult lowerSearchSorted(OpLowering &op, OpTy args) {
  Value lines = args.getSortedSequence();
  ArrayRef<int64_t> sizes = op.sizes(lines);
  bool right = op.boolean(args.getRight()) ||
               op.optionalString(args.getSide(), "left") == "right";
  Value order;
  if (!op.isNone(args.getSorter()))
    order = op.checkBounds(op.tensor(args.getSorter()), 0,
                           sizes.empty() ? 1 : sizes.back());
  return lowerSearch(op,
                     {op.tensor(lines), sizes, op.dtype(lines), order, right},
                     args.getSelf());
}

void torch_ltc::populateScanLowerings(LoweringTable &table) {
  table.add(lowerScan<addNext, startAtZero, AtenCumsumOp>);
  table.add(lowerScan<multiplyNext, startAtOne, AtenCumprodOp>);
  table.add(lowerLogcumsumexp);
  table.add(lowerScanExtreme<true, AtenCummaxOp>);
  table.add(lowerScanExtreme<false, AtenCumminOp>);
  table.add(lowerBucketize);
  table.add(lowerSearchSorted<AtenSearchsortedTensorOp>);
  table.add(lowerSearchSorted<AtenSearchsortedScalarOp>);
}
