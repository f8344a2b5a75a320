//===- Constructor.cpp - Tensors made from numbers and sizes --------------===//

#include "TensorLowering.h"

#include "torch_ltc/Dialect/Torch/TorchOps.h"

#include "mlir/IR/DialectResourceBlobManager.h"

using namespace mlir;
using namespace mlir::torch_ltc;

/// zeros, ones, and empty, which is filled with 0 so that no run depends on
/// earlier contents of memory.
template <int value>
static LogicalResult lowerConstantFill(TensorLowering &op) {
  return op.replaceWith(
      op.target.splat(op.resultSizes(), op.scalar(op.resultDtype(), value)));
}

/// full and similar ops; the fill value is argument `position`.
template <unsigned position>
static LogicalResult lowerFull(TensorLowering &op) {
  Value number = op.numberTensor(position, op.resultDtype());
  return op.replaceWith(op.target.broadcast(number, op.resultSizes()));
}

/// fill.Tensor(self, value)
static LogicalResult lowerFillTensor(TensorLowering &op) {
  Value value = op.operandAs(1, op.resultDtype());
  return op.replaceWith(op.target.broadcast(value, op.resultSizes()));
}

static LogicalResult lowerNumToTensor(TensorLowering &op) {
  // A dynamic scalar of the result's dtype is already the result, even in a
  // target without float64, which represents a float as float32.
  Type dtype = op.resultDtype();
  if (!op.number(0).constant && op.number(0).dtype == dtype)
    return op.replaceWith(op.tensor(0));
  return op.replaceWith(op.numberTensor(0, dtype));
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

/// arange(end), arange.start(start, end), arange.start_step(start, end, step)
static LogicalResult lowerArange(TensorLowering &op) {
  return makeRange(op, 0, 1);
}
static LogicalResult lowerArangeStart(TensorLowering &op) {
  return makeRange(op, op.number(0).asDouble(), 1);
}
static LogicalResult lowerArangeStep(TensorLowering &op) {
  return makeRange(op, op.number(0).asDouble(), op.number(2).asDouble());
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
  table.add("aten.eye", lowerEye);
  table.add("aten.eye.m", lowerEye);
}
