//===- IndexBuilder.cpp - Arithmetic on positions -------------------------===//

#include "IndexBuilder.h"

using namespace mlir;
using namespace mlir::torch_ltc;

Value IndexBuilder::constant(int64_t value) {
  return arith::ConstantIndexOp::create(builder, loc, value);
}

Value IndexBuilder::add(Value a, Value b) {
  return arith::AddIOp::create(builder, loc, a, b);
}

Value IndexBuilder::add(Value a, int64_t b) {
  return b == 0 ? a : add(a, constant(b));
}

Value IndexBuilder::sub(Value a, Value b) {
  return arith::SubIOp::create(builder, loc, a, b);
}

Value IndexBuilder::mul(Value a, int64_t b) {
  return b == 1 ? a : arith::MulIOp::create(builder, loc, a, constant(b));
}

Value IndexBuilder::floorDiv(Value a, int64_t b) {
  if (b == 1)
    return a;
  return arith::FloorDivSIOp::create(builder, loc, a, constant(b));
}

Value IndexBuilder::ceilDiv(Value a, int64_t b) {
  if (b == 1)
    return a;
  return arith::CeilDivSIOp::create(builder, loc, a, constant(b));
}

Value IndexBuilder::max(Value a, Value b) {
  return arith::MaxSIOp::create(builder, loc, a, b);
}

Value IndexBuilder::min(Value a, Value b) {
  return arith::MinSIOp::create(builder, loc, a, b);
}

Value IndexBuilder::less(Value a, Value b) {
  return arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::slt, a, b);
}

Value IndexBuilder::equal(Value a, Value b) {
  return arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq, a, b);
}

Value IndexBuilder::select(Value condition, Value yes, Value no) {
  return arith::SelectOp::create(builder, loc, condition, yes, no);
}

Value IndexBuilder::linear(ValueRange indices, ArrayRef<int64_t> strides,
                           int64_t offset) {
  Value position;
  for (auto [index, stride] : llvm::zip_equal(indices, strides)) {
    if (stride == 0)
      continue;
    Value term = mul(index, stride);
    position = position ? add(position, term) : term;
  }
  return position ? add(position, offset) : constant(offset);
}

Value IndexBuilder::fromElement(Value element, int64_t size) {
  return fromElement(element, size, size - 1);
}

Value IndexBuilder::fromElement(Value element, int64_t size, int64_t last) {
  Value index = toIndex(element);
  Value zero = constant(0);
  Value wrapped = add(index, size);
  index = select(less(index, zero), wrapped, index);
  return min(max(index, zero), constant(std::max<int64_t>(last, 0)));
}

Value IndexBuilder::toInteger(Value index) {
  return arith::IndexCastOp::create(builder, loc, builder.getI64Type(), index);
}

Value IndexBuilder::toIndex(Value element) {
  return arith::IndexCastOp::create(builder, loc, builder.getIndexType(),
                                    element);
}

Value IndexBuilder::extract(Value tensor, ValueRange indices) {
  return tensor::ExtractOp::create(builder, loc, tensor, indices);
}

Value IndexBuilder::insert(Value scalar, Value tensor, ValueRange indices) {
  return tensor::InsertOp::create(builder, loc, scalar, tensor, indices);
}
