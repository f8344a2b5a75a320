//===- Constructor.cpp - Tensors made from numbers and sizes --------------===//

#include "TensorLowering.h"

#include "../TorchToLinalg/OpArguments.h"

#include "torch_ltc/Dialect/Torch/TorchOps.h"
#include "torch_ltc/Dialect/Torch/TorchOps_constructor.h"

#include "mlir/IR/DialectResourceBlobManager.h"

using namespace mlir;
using namespace mlir::torch_ltc;
using namespace mlir::torch_ltc::torch::ops;

/// zeros, ones, and empty, which is filled with 0 so that no run depends on
/// earlier contents of memory.
template <int value>
static LogicalResult lowerConstantFill(TensorLowering &op) {
  return op.replaceWith(
      op.target.splat(op.resultSizes(), op.scalar(op.resultDtype(), value)));
}

/// `number`: an argument of the op.
static LogicalResult fillWith(TensorLowering &op, Value number) {
  return op.replaceWith(op.target.broadcast(
      op.numberTensor(number, op.resultDtype()), op.resultSizes()));
}

template <typename OpTy>
static LogicalResult lowerFull(TensorLowering &op, OpTy args) {
  return fillWith(op, args.getFillValue());
}

static LogicalResult lowerFillScalar(TensorLowering &op,
                                     AtenFillScalarOp args) {
  return fillWith(op, args.getValue());
}

static LogicalResult lowerScalarTensor(TensorLowering &op,
                                       AtenScalarTensorOp args) {
  return fillWith(op, args.getS());
}

static LogicalResult lowerFillTensor(TensorLowering &op,
                                     AtenFillTensorOp args) {
  Value value = op.operandAs(args.getValue(), op.resultDtype());
  return op.replaceWith(op.target.broadcast(value, op.resultSizes()));
}

static LogicalResult lowerNumToTensor(TensorLowering &op) {
  Value argument = cast<torch::PrimNumToTensorScalarOp>(op.op).getNumber();
  NumberOperand number = op.number(argument);
  // A dynamic scalar of the result's dtype is already the result, even in a
  // target without float64, which represents a float as float32.
  if (!number.constant && number.dtype == op.resultDtype())
    return op.replaceWith(op.tensor(argument));
  return fillWith(op, argument);
}

static LogicalResult lowerLiteral(TensorLowering &op) {
  auto literal = cast<torch::ValueTensorLiteralOp>(op.op);
  RankedTensorType type = op.resultType();
  ElementsAttr value = literal.getValue();
  if (auto dense = dyn_cast<DenseElementsAttr>(value))
    // Only the type's signedness is dropped; the bytes stay the same.
    return op.replaceWith(
        op.target.constant(dense.bitcast(type.getElementType())));
  auto resource = dyn_cast<DenseResourceElementsAttr>(value);
  AsmResourceBlob *blob =
      resource ? resource.getRawHandle().getBlob() : nullptr;
  if (!blob || type.getElementType().isInteger(1))
    return op.fail("its elements are stored in an unknown form");
  return op.replaceWith(op.target.constant(
      DenseElementsAttr::getFromRawBuffer(type, blob->getData())));
}

/// start + index * step, for constant numbers. torch computes float results in
/// float64 and rounds them; it computes integer results in int64.
static LogicalResult makeRange(TensorLowering &op, std::optional<double> start,
                               std::optional<double> step) {
  if (!start || !step)
    return op.fail("its start or step isn't a constant");
  Type dtype = op.resultDtype();
  Type elementType = storageTypeOf(dtype);
  int64_t count = op.resultType().getNumElements();
  if (*start == 0 && *step == 1 && !isa<FloatType>(dtype))
    return op.replaceWith(op.target.iota(count, elementType));
  if (auto floatType = dyn_cast<FloatType>(elementType)) {
    SmallVector<APFloat> values;
    for (int64_t i = 0; i < count; ++i)
      values.push_back(cast<FloatAttr>(op.builder.getFloatAttr(
                                           floatType, *start + i * *step))
                           .getValue());
    auto type = RankedTensorType::get(op.resultSizes(), elementType);
    return op.replaceWith(
        op.target.constant(DenseElementsAttr::get(type, values)));
  }
  SmallVector<int64_t> values;
  for (int64_t i = 0; i < count; ++i)
    values.push_back(static_cast<int64_t>(*start) +
                     i * static_cast<int64_t>(*step));
  return op.replaceWith(
      op.constantIntegers(op.resultSizes(), values, elementType));
}

static LogicalResult lowerArange(TensorLowering &op, AtenArangeOp) {
  return makeRange(op, 0, 1);
}
static LogicalResult lowerArangeStart(TensorLowering &op,
                                      AtenArangeStartOp args) {
  return makeRange(op, op.number(args.getStart()).asDouble(), 1);
}
static LogicalResult lowerArangeStep(TensorLowering &op,
                                     AtenArangeStartStepOp args) {
  return makeRange(op, op.number(args.getStart()).asDouble(),
                   op.number(args.getStep()).asDouble());
}

/// eye(n) and eye.m(n, m)
static LogicalResult lowerEye(TensorLowering &op) {
  int64_t rows = op.resultSizes()[0], columns = op.resultSizes()[1];
  Type i64 = op.builder.getI64Type();
  Value row = op.target.reshape(op.target.iota(rows, i64), {rows, 1});
  Value column = op.target.reshape(op.target.iota(columns, i64), {1, columns});
  return op.replaceWith(op.convert(op.equal(row, column),
                                   op.builder.getI1Type(), op.resultDtype()));
}

void torch_ltc::populateConstructorTensorLowerings(TensorLoweringTable &table) {
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
  table.add("aten.eye", lowerEye);
  table.add("aten.eye.m", lowerEye);
}
