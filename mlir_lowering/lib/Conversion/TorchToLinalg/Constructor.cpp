//===- Constructor.cpp - Tensors made from numbers and sizes --------------===//

#include "IndexBuilder.h"
#include "OpLowering.h"

#include "torch_ltc/Dialect/Torch/TorchOps.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/DialectResourceBlobManager.h"

using namespace mlir;
using namespace mlir::torch_ltc;

//===----------------------------------------------------------------------===//
// One value for all elements
//===----------------------------------------------------------------------===//

/// zeros, ones, and empty, which is filled with 0 so that no run depends on
/// earlier contents of memory.
template <int value> static LogicalResult lowerConstantFill(OpLowering &op) {
  ScalarBuilder s(op.builder, op.loc, op.resultDtype());
  return op.replaceWith(op.tensors.fill(op.resultSizes(), s.integer(value)));
}

/// full and similar ops; the fill value is argument `position`.
template <unsigned position> static LogicalResult lowerFull(OpLowering &op) {
  Value scalar =
      op.number(position).materialize(op.builder, op.loc, op.resultDtype());
  return op.replaceWith(op.tensors.fill(op.resultSizes(), scalar));
}

/// fill.Tensor(self, value)
static LogicalResult lowerFillTensor(OpLowering &op) {
  Value value = op.tensors.convert(op.tensor(1), op.dtype(1), op.resultDtype());
  return op.replaceWith(op.tensors.broadcast(value, op.resultSizes()));
}

static LogicalResult lowerNumToTensor(OpLowering &op) {
  Value scalar = op.number(0).materialize(op.builder, op.loc, op.resultDtype());
  return op.replaceWith(op.tensors.fill({}, scalar));
}

static LogicalResult lowerLiteral(OpLowering &op) {
  auto literal = cast<torch::ValueTensorLiteralOp>(op.op);
  RankedTensorType type = op.resultType();
  ElementsAttr value = literal.getValue();
  // Only the type's signedness is dropped; the bytes stay the same.
  if (auto dense = dyn_cast<DenseElementsAttr>(value))
    value = dense.bitcast(type.getElementType());
  else if (auto resource = dyn_cast<DenseResourceElementsAttr>(value))
    value = DenseResourceElementsAttr::get(type, resource.getRawHandle());
  else
    return op.fail("its elements are stored in an unknown form");
  return op.replaceWith(
      arith::ConstantOp::create(op.builder, op.loc, cast<TypedAttr>(value))
          .getResult());
}

//===----------------------------------------------------------------------===//
// Ranges
//===----------------------------------------------------------------------===//

/// start + index * step. torch computes float results in float64 and rounds
/// them; it computes integer results in int64.
static LogicalResult makeRange(OpLowering &op, NumberOperand start,
                               NumberOperand step) {
  Type dtype = op.resultDtype();
  MLIRContext *context = op.builder.getContext();
  Type compute = isa<FloatType>(dtype)
                     ? Type(Float64Type::get(context))
                     : IntegerType::get(context, 64, IntegerType::Signed);
  Value result = op.tensors.fromIndices(
      op.resultSizes(), storageTypeOf(dtype),
      [&](OpBuilder &nested, Location loc, ValueRange indices) {
        ScalarBuilder s(nested, loc, compute);
        Value index = IndexBuilder(nested, loc).toInteger(indices[0]);
        Type indexDtype = IntegerType::get(context, 64, IntegerType::Signed);
        index = s.convert(index, indexDtype, compute);
        if (step.asDouble() != 1.0)
          index = s.mul(index, step.materialize(nested, loc, compute));
        if (start.asDouble() != 0.0)
          index = s.add(start.materialize(nested, loc, compute), index);
        return s.convert(index, compute, dtype);
      });
  return op.replaceWith(result);
}

static NumberOperand constantNumber(OpLowering &op, int64_t value) {
  Type dtype =
      IntegerType::get(op.builder.getContext(), 64, IntegerType::Signed);
  return {dtype, op.builder.getI64IntegerAttr(value), {}};
}

/// arange(end), arange.start(start, end), arange.start_step(start, end, step)
static LogicalResult lowerArange(OpLowering &op) {
  return makeRange(op, constantNumber(op, 0), constantNumber(op, 1));
}
static LogicalResult lowerArangeStart(OpLowering &op) {
  return makeRange(op, op.number(0), constantNumber(op, 1));
}
static LogicalResult lowerArangeStep(OpLowering &op) {
  return makeRange(op, op.number(0), op.number(2));
}

/// linspace(start, end, steps): computes the elements from the nearer end, like
/// torch.
static LogicalResult lowerLinspace(OpLowering &op) {
  Type dtype = op.resultDtype(), compute = computeDtypeOf(dtype);
  if (!isa<FloatType>(dtype))
    compute = Float64Type::get(op.builder.getContext());
  int64_t steps = op.integer(2);
  Value result = op.tensors.fromIndices(
      op.resultSizes(), storageTypeOf(dtype),
      [&](OpBuilder &nested, Location loc, ValueRange indices) {
        ScalarBuilder s(nested, loc, compute);
        IndexBuilder b(nested, loc);
        Type indexDtype =
            IntegerType::get(nested.getContext(), 64, IntegerType::Signed);
        Value start = op.number(0).materialize(nested, loc, compute);
        Value end = op.number(1).materialize(nested, loc, compute);
        if (!isa<FloatType>(dtype)) {
          // For an integer dtype, torch casts the bounds to integers first.
          start = s.convert(s.convert(start, compute, dtype), dtype, compute);
          end = s.convert(s.convert(end, compute, dtype), dtype, compute);
        }
        if (steps == 1)
          return s.convert(start, compute, dtype);
        Value step = s.div(s.sub(end, start), s.integer(steps - 1));
        // Integer results are truncated, so the single rounding of torch's
        // multiply-add must be reproduced.
        auto moved = [&](Value from, Value by, Value count) -> Value {
          Value times = s.convert(b.toInteger(count), indexDtype, compute);
          if (isa<FloatType>(dtype))
            return s.add(from, s.mul(by, times));
          return math::FmaOp::create(nested, loc, by, times, from).getResult();
        };
        Value fromStart = moved(start, step, indices[0]);
        Value rest = b.sub(b.constant(steps - 1), indices[0]);
        Value fromEnd = moved(end, s.neg(step), rest);
        Value isFirstHalf = b.less(indices[0], b.constant(steps / 2));
        return s.convert(s.select(isFirstHalf, fromStart, fromEnd), compute,
                         dtype);
      });
  return op.replaceWith(result);
}

/// eye(n) and eye.m(n, m)
static LogicalResult lowerEye(OpLowering &op) {
  Value result = op.tensors.fromIndices(
      op.resultSizes(), op.resultType().getElementType(),
      [&](OpBuilder &nested, Location loc, ValueRange indices) {
        ScalarBuilder s(nested, loc, op.resultDtype());
        Value diagonal =
            IndexBuilder(nested, loc).equal(indices[0], indices[1]);
        return s.select(diagonal, s.integer(1), s.integer(0));
      });
  return op.replaceWith(result);
}

/// tril_indices and triu_indices: (row, col, offset). Runs over the triangle
/// row by row, and writes the row indices to the first half of the result, the
/// column indices to the second half.
template <bool isLower>
static LogicalResult lowerTriangleIndices(OpLowering &op) {
  int64_t rows = op.integer(0), columns = op.integer(1), offset = op.integer(2);
  ArrayRef<int64_t> sizes = op.resultSizes();
  Type dtype = op.resultDtype();
  Type from =
      IntegerType::get(op.builder.getContext(), 64, IntegerType::Signed);
  IndexBuilder outer(op.builder, op.loc);
  Value zero = outer.constant(0), one = outer.constant(1);
  Value width = outer.constant(columns), half = outer.constant(sizes[1]);

  auto writeElement = [&](OpBuilder &builder, Location loc, Value row,
                          Value column, Value table, Value position) {
    IndexBuilder b(builder, loc);
    ScalarBuilder s(builder, loc, dtype);
    auto number = [&](Value index) {
      return s.convert(b.toInteger(index), from, dtype);
    };
    table = b.insert(number(row), table, position);
    table = b.insert(number(column), table, b.add(position, half));
    scf::YieldOp::create(builder, loc, ValueRange{table, b.add(position, 1)});
  };
  auto writeRow = [&](OpBuilder &builder, Location loc, Value row,
                      ValueRange carried) {
    IndexBuilder b(builder, loc);
    Value diagonal = b.add(row, b.constant(isLower ? offset + 1 : offset));
    diagonal = b.min(b.max(diagonal, zero), width);
    auto loop = scf::ForOp::create(
        builder, loc, isLower ? zero : diagonal, isLower ? diagonal : width,
        one, carried,
        [&](OpBuilder &nested, Location loc, Value column, ValueRange carried) {
          writeElement(nested, loc, row, column, carried[0], carried[1]);
        });
    scf::YieldOp::create(builder, loc, loop.getResults());
  };
  Value table = op.tensors.zeros({2 * sizes[1]}, dtype);
  auto loop = scf::ForOp::create(op.builder, op.loc, zero, outer.constant(rows),
                                 one, ValueRange{table, zero}, writeRow);
  return op.replaceWith(op.tensors.reshape(loop.getResult(0), sizes));
}

void torch_ltc::populateConstructorLowerings(LoweringTable &table) {
  for (StringRef name :
       {"aten.zeros", "aten.zeros_like", "aten.new_zeros", "aten.zero",
        "aten.empty.memory_format", "aten.empty_like", "aten.new_empty"})
    table.add(name, lowerConstantFill<0>);
  for (StringRef name : {"aten.ones", "aten.ones_like", "aten.new_ones"})
    table.add(name, lowerConstantFill<1>);
  table.add("aten.full", lowerFull<1>, {1});
  table.add("aten.full_like", lowerFull<1>, {1});
  table.add("aten.new_full", lowerFull<2>, {2});
  table.add("aten.fill.Scalar", lowerFull<1>, {1});
  table.add("aten.scalar_tensor", lowerFull<0>, {0});
  table.add("aten.fill.Tensor", lowerFillTensor);
  table.add("prim.NumToTensor.Scalar", lowerNumToTensor, {0});
  table.add("vtensor.literal", lowerLiteral);
  table.add("aten.arange", lowerArange, {0});
  table.add("aten.arange.start", lowerArangeStart, {0, 1});
  table.add("aten.arange.start_step", lowerArangeStep, {0, 1, 2});
  table.add("aten.linspace", lowerLinspace, {0, 1});
  table.add("aten.eye", lowerEye);
  table.add("aten.eye.m", lowerEye);
  table.add("aten.tril_indices", lowerTriangleIndices<true>);
  table.add("aten.triu_indices", lowerTriangleIndices<false>);
}
