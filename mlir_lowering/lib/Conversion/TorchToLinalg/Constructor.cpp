//===- Constructor.cpp - Tensors made from numbers and sizes --------------===//

#include "IndexBuilder.h"
#include "OpArguments.h"

#include "torch_ltc/Dialect/Torch/TorchOps.h"
#include "torch_ltc/Dialect/Torch/TorchOps_constructor.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/DialectResourceBlobManager.h"

using namespace mlir;
using namespace mlir::torch_ltc;
using namespace mlir::torch_ltc::torch::ops;

//===----------------------------------------------------------------------===//
// One value for all elements
//===----------------------------------------------------------------------===//

/// zeros, ones, and empty, which is filled with 0 so that no run depends on
/// earlier contents of memory.
template <int value> static LogicalResult lowerConstantFill(OpLowering &op) {
  ScalarBuilder s(op.builder, op.loc, op.resultDtype());
  return op.replaceWith(op.tensors.fill(op.resultSizes(), s.integer(value)));
}

/// `number`: an argument of the op.
static LogicalResult fillWith(OpLowering &op, Value number) {
  Value scalar =
      op.number(number).materialize(op.builder, op.loc, op.resultDtype());
  return op.replaceWith(op.tensors.fill(op.resultSizes(), scalar));
}

template <typename OpTy>
static LogicalResult lowerFull(OpLowering &op, OpTy args) {
  return fillWith(op, args.getFillValue());
}

static LogicalResult lowerFillScalar(OpLowering &op, AtenFillScalarOp args) {
  return fillWith(op, args.getValue());
}

static LogicalResult lowerScalarTensor(OpLowering &op,
                                       AtenScalarTensorOp args) {
  return fillWith(op, args.getS());
}

static LogicalResult lowerNumToTensor(OpLowering &op) {
  return fillWith(op, cast<torch::PrimNumToTensorScalarOp>(op.op).getNumber());
}

static LogicalResult lowerFillTensor(OpLowering &op, AtenFillTensorOp args) {
  Value value = args.getValue();
  Value converted =
      op.tensors.convert(op.tensor(value), op.dtype(value), op.resultDtype());
  return op.replaceWith(op.tensors.broadcast(converted, op.resultSizes()));
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

static LogicalResult lowerArange(OpLowering &op, AtenArangeOp) {
  return makeRange(op, constantNumber(op, 0), constantNumber(op, 1));
}
static LogicalResult lowerArangeStart(OpLowering &op, AtenArangeStartOp args) {
  return makeRange(op, op.number(args.getStart()), constantNumber(op, 1));
}
static LogicalResult lowerArangeStep(OpLowering &op,
                                     AtenArangeStartStepOp args) {
  return makeRange(op, op.number(args.getStart()), op.number(args.getStep()));
}

/// Computes the elements from the nearer end, like torch.
static LogicalResult lowerLinspace(OpLowering &op, AtenLinspaceOp args) {
  Type dtype = op.resultDtype(), compute = computeDtypeOf(dtype);
  if (!isa<FloatType>(dtype))
    compute = Float64Type::get(op.builder.getContext());
  int64_t steps = op.integer(args.getSteps());
  NumberOperand first = op.number(args.getStart());
  NumberOperand last = op.number(args.getEnd());
  Value result = op.tensors.fromIndices(
      op.resultSizes(), storageTypeOf(dtype),
      [&](OpBuilder &nested, Location loc, ValueRange indices) {
        ScalarBuilder s(nested, loc, compute);
        IndexBuilder b(nested, loc);
        Type indexDtype =
            IntegerType::get(nested.getContext(), 64, IntegerType::Signed);
        Value start = first.materialize(nested, loc, compute);
        Value end = last.materialize(nested, loc, compute);
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

/// tril_indices and triu_indices. Runs over the triangle row by row, and writes
/// the row indices to the first half of the result, the column indices to the
/// second half.
template <bool isLower, typename OpTy>
static LogicalResult lowerTriangleIndices(OpLowering &op, OpTy args) {
  int64_t rows = op.integer(args.getRow());
  int64_t columns = op.integer(args.getCol());
  int64_t offset = op.integer(args.getOffset());
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
  for (StringRef name : zeroConstructors)
    table.add(name, lowerConstantFill<0>);
  for (StringRef name : oneConstructors)
    table.add(name, lowerConstantFill<1>);
  table.add(lowerFull<AtenFullOp>);
  table.add(lowerFull<AtenFullLikeOp>);
  table.add(lowerFull<AtenNewFullOp>);
  table.add(lowerFillScalar);
  table.add(lowerScalarTensor);
  table.add(lowerFillTensor);
  table.add("prim.NumToTensor.Scalar", lowerNumToTensor,
            /*dynamicScalars=*/{0});
  table.add("vtensor.literal", lowerLiteral);
  table.add(lowerArange);
  table.add(lowerArangeStart);
  table.add(lowerArangeStep);
  table.add(lowerLinspace);
  table.add("aten.eye", lowerEye);
  table.add("aten.eye.m", lowerEye);
  table.add(lowerTriangleIndices<true, AtenTrilIndicesOp>);
  table.add(lowerTriangleIndices<false, AtenTriuIndicesOp>);
}
