//===- ScalarBuilder.cpp - arithmetic on torch scalars ----------*- C++ -*-===//

#include "ScalarBuilder.h"

#include <algorithm>
#include <cmath>
#include <limits>

using namespace mlir;
using namespace mlir::torch_ltc;

//===----------------------------------------------------------------------===//
// Dtypes
//===----------------------------------------------------------------------===//

Type torch_ltc::storageTypeOf(Type dtype) {
  if (auto integer = dyn_cast<IntegerType>(dtype))
    return IntegerType::get(dtype.getContext(), integer.getWidth());
  return dtype;
}

Type torch_ltc::computeDtypeOf(Type dtype) {
  if (dtype.isBF16() || dtype.isF16())
    return Float32Type::get(dtype.getContext());
  return dtype;
}

bool torch_ltc::isBool(Type dtype) { return dtype.isInteger(1); }

bool torch_ltc::isUnsigned(Type dtype) {
  return dtype.isUnsignedInteger() || isBool(dtype);
}

int torch_ltc::dtypeKind(Type dtype) {
  if (isa<FloatType>(dtype))
    return 2;
  return isBool(dtype) ? 0 : 1;
}

Type torch_ltc::promoteDtypes(Type a, Type b) {
  if (a == b)
    return a;
  if (dtypeKind(a) != dtypeKind(b))
    return dtypeKind(a) > dtypeKind(b) ? a : b;
  unsigned widthA = a.getIntOrFloatBitWidth();
  unsigned widthB = b.getIntOrFloatBitWidth();
  if (widthA != widthB)
    return widthA > widthB ? a : b;
  // Dtypes of the same width are bfloat16 and float16, or uint8 and int8.
  if (isa<FloatType>(a))
    return Float32Type::get(a.getContext());
  return IntegerType::get(a.getContext(), 2 * widthA, IntegerType::Signed);
}

//===----------------------------------------------------------------------===//
// Constants
//===----------------------------------------------------------------------===//

Value ScalarBuilder::constant(double value) {
  if (auto type = dyn_cast<FloatType>(dtype)) {
    // Like c10::BFloat16(double), round to float32 first, then to 16 bits.
    if (type.getWidth() == 16)
      value = static_cast<float>(value);
    return arith::ConstantOp::create(builder, loc,
                                     builder.getFloatAttr(type, value));
  }
  if (isBool(dtype))
    return boolean(value != 0);
  return integer(static_cast<int64_t>(value));
}

Value ScalarBuilder::integer(int64_t value) {
  if (isFloat())
    return constant(static_cast<double>(value));
  if (isBool(dtype))
    return boolean(value != 0);
  auto type = cast<IntegerType>(storageTypeOf(dtype));
  APInt bits = APInt(64, static_cast<uint64_t>(value)).trunc(type.getWidth());
  return arith::ConstantOp::create(builder, loc,
                                   builder.getIntegerAttr(type, bits));
}

Value ScalarBuilder::boolean(bool value) {
  return arith::ConstantOp::create(builder, loc, builder.getBoolAttr(value));
}

Value ScalarBuilder::index(int64_t value) {
  return arith::ConstantIndexOp::create(builder, loc, value);
}

Value ScalarBuilder::lowest() {
  if (isFloat())
    return constant(-std::numeric_limits<double>::infinity());
  if (isUnsigned(dtype))
    return integer(0);
  return integer(
      APInt::getSignedMinValue(dtype.getIntOrFloatBitWidth()).getSExtValue());
}

Value ScalarBuilder::highest() {
  if (isFloat())
    return constant(std::numeric_limits<double>::infinity());
  unsigned width = dtype.getIntOrFloatBitWidth();
  if (isUnsigned(dtype))
    return integer(APInt::getMaxValue(width).getZExtValue());
  return integer(APInt::getSignedMaxValue(width).getSExtValue());
}

//===----------------------------------------------------------------------===//
// Arithmetic
//===----------------------------------------------------------------------===//

Value ScalarBuilder::add(Value a, Value b) {
  if (isFloat())
    return binary<arith::AddFOp>(a, b);
  return isBool(dtype) ? binary<arith::OrIOp>(a, b)
                       : binary<arith::AddIOp>(a, b);
}

Value ScalarBuilder::sub(Value a, Value b) {
  return isFloat() ? binary<arith::SubFOp>(a, b) : binary<arith::SubIOp>(a, b);
}

Value ScalarBuilder::mul(Value a, Value b) {
  if (isFloat())
    return binary<arith::MulFOp>(a, b);
  return isBool(dtype) ? binary<arith::AndIOp>(a, b)
                       : binary<arith::MulIOp>(a, b);
}

Value ScalarBuilder::div(Value a, Value b) {
  if (isFloat())
    return binary<arith::DivFOp>(a, b);
  Value one = integer(1);
  Value divisor = select(truth(b), b, one);
  if (isUnsigned(dtype))
    return binary<arith::DivUIOp>(a, divisor);
  Value minusOne = integer(-1);
  Value isMinusOne = compare(Comparison::eq, divisor, minusOne);
  Value quotient = binary<arith::DivSIOp>(a, select(isMinusOne, one, divisor));
  return select(isMinusOne, neg(a), quotient);
}

Value ScalarBuilder::truncRemainder(Value a, Value b) {
  if (isFloat())
    return binary<arith::RemFOp>(a, b);
  Value one = integer(1);
  Value divisor = select(truth(b), b, one);
  if (isUnsigned(dtype))
    return binary<arith::RemUIOp>(a, divisor);
  // Divide by 1 instead of -1, because a division by -1 can overflow. Both
  // remainders are 0.
  Value isMinusOne = compare(Comparison::eq, divisor, integer(-1));
  return binary<arith::RemSIOp>(a, select(isMinusOne, one, divisor));
}

Value ScalarBuilder::floorRemainder(Value a, Value b) {
  Value remainder = truncRemainder(a, b);
  if (isUnsigned(dtype))
    return remainder;
  Value zero = integer(0);
  Value signsDiffer =
      binary<arith::XOrIOp>(compare(Comparison::lt, b, zero),
                            compare(Comparison::lt, remainder, zero));
  Value adjust = logicalAnd(truth(remainder), signsDiffer);
  return select(adjust, add(remainder, b), remainder);
}

Value ScalarBuilder::floorDiv(Value a, Value b, Type step) {
  if (isUnsigned(dtype))
    return div(a, b);
  Value remainder = truncRemainder(a, b);
  Value zero = integer(0), one = integer(1);
  Value signsDiffer =
      binary<arith::XOrIOp>(compare(Comparison::lt, b, zero),
                            compare(Comparison::lt, remainder, zero));
  Value adjust = logicalAnd(truth(remainder), signsDiffer);
  if (!isFloat()) {
    Value quotient = div(a, b);
    return select(adjust, sub(quotient, one), quotient);
  }
  // Follow c10::div_floor_floating: the computed quotient (a - a mod b) / b may
  // be slightly less than an integer, so it is rounded to the nearest one.
  auto round = [&](Value value) {
    return step ? roundedTo(step, value) : value;
  };
  Value quotient = round(div(round(sub(a, remainder)), b));
  quotient = select(adjust, round(sub(quotient, one)), quotient);
  Value floored = unary<math::FloorOp>(quotient);
  Value tooLow =
      compare(Comparison::gt, round(sub(quotient, floored)), constant(0.5));
  floored = select(tooLow, add(floored, one), floored);
  Value signedZero = copySign(zero, div(a, b));
  Value result = select(truth(quotient), floored, signedZero);
  return select(truth(b), result, div(a, b));
}

Value ScalarBuilder::neg(Value a) {
  if (isFloat())
    return unary<arith::NegFOp>(a);
  return sub(integer(0), a);
}

Value ScalarBuilder::abs(Value a) {
  if (isFloat())
    return unary<math::AbsFOp>(a);
  if (isUnsigned(dtype))
    return a;
  return select(compare(Comparison::lt, a, integer(0)), neg(a), a);
}

Value ScalarBuilder::signBit(Value a) {
  unsigned width = a.getType().getIntOrFloatBitWidth();
  Type integerType = builder.getIntegerType(width);
  Value bits = arith::BitcastOp::create(builder, loc, integerType, a);
  Value zero = arith::ConstantOp::create(
      builder, loc, builder.getIntegerAttr(integerType, 0));
  return arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::slt, bits,
                               zero);
}

// math.copysign isn't used: for a bfloat16 that is loaded and extended, LLVM
// 22.1 folds it to the magnitude on x86.
Value ScalarBuilder::copySign(Value magnitude, Value sign) {
  Value positive = abs(magnitude);
  return select(signBit(sign), neg(positive), positive);
}

Value ScalarBuilder::maximum(Value a, Value b) {
  if (isFloat())
    return binary<arith::MaximumFOp>(a, b);
  return isUnsigned(dtype) ? binary<arith::MaxUIOp>(a, b)
                           : binary<arith::MaxSIOp>(a, b);
}

Value ScalarBuilder::minimum(Value a, Value b) {
  if (isFloat())
    return binary<arith::MinimumFOp>(a, b);
  return isUnsigned(dtype) ? binary<arith::MinUIOp>(a, b)
                           : binary<arith::MinSIOp>(a, b);
}

// The comparison compiles to x86's maxps; the rest handles NaN.
Value ScalarBuilder::laterMaximum(Value a, Value b) {
  if (!isFloat())
    return maximum(a, b);
  Value larger = select(compare(Comparison::gt, a, b), a, b);
  return select(isNan(a), a, larger);
}

Value ScalarBuilder::laterMinimum(Value a, Value b) {
  if (!isFloat())
    return minimum(a, b);
  Value smaller = select(compare(Comparison::lt, a, b), a, b);
  return select(isNan(a), a, smaller);
}

Value ScalarBuilder::isDenormalOrLess(Value a) {
  return compare(Comparison::lt, a,
                 constant(std::numeric_limits<float>::min()));
}

Value ScalarBuilder::maxNumber(Value a, Value b) {
  return isFloat() ? binary<arith::MaxNumFOp>(a, b) : maximum(a, b);
}

Value ScalarBuilder::minNumber(Value a, Value b) {
  return isFloat() ? binary<arith::MinNumFOp>(a, b) : minimum(a, b);
}

//===----------------------------------------------------------------------===//
// Truth values
//===----------------------------------------------------------------------===//

static arith::CmpFPredicate floatPredicate(Comparison comparison) {
  switch (comparison) {
  case Comparison::eq:
    return arith::CmpFPredicate::OEQ;
  case Comparison::ne:
    return arith::CmpFPredicate::UNE;
  case Comparison::lt:
    return arith::CmpFPredicate::OLT;
  case Comparison::le:
    return arith::CmpFPredicate::OLE;
  case Comparison::gt:
    return arith::CmpFPredicate::OGT;
  case Comparison::ge:
    return arith::CmpFPredicate::OGE;
  }
  llvm_unreachable("all comparisons are handled");
}

static arith::CmpIPredicate integerPredicate(Comparison comparison,
                                             bool isUnsigned) {
  using P = arith::CmpIPredicate;
  switch (comparison) {
  case Comparison::eq:
    return P::eq;
  case Comparison::ne:
    return P::ne;
  case Comparison::lt:
    return isUnsigned ? P::ult : P::slt;
  case Comparison::le:
    return isUnsigned ? P::ule : P::sle;
  case Comparison::gt:
    return isUnsigned ? P::ugt : P::sgt;
  case Comparison::ge:
    return isUnsigned ? P::uge : P::sge;
  }
  llvm_unreachable("all comparisons are handled");
}

Value ScalarBuilder::compare(Comparison comparison, Value a, Value b) {
  if (isa<FloatType>(a.getType()))
    return arith::CmpFOp::create(builder, loc, floatPredicate(comparison), a,
                                 b);
  bool unsignedValues = !a.getType().isIndex() && isUnsigned(dtype);
  return arith::CmpIOp::create(
      builder, loc, integerPredicate(comparison, unsignedValues), a, b);
}

Value ScalarBuilder::isNan(Value a) {
  if (!isa<FloatType>(a.getType()))
    return boolean(false);
  return arith::CmpFOp::create(builder, loc, arith::CmpFPredicate::UNO, a, a);
}

Value ScalarBuilder::select(Value condition, Value yes, Value no) {
  return arith::SelectOp::create(builder, loc, condition, yes, no);
}

Value ScalarBuilder::logicalAnd(Value a, Value b) {
  return binary<arith::AndIOp>(a, b);
}

Value ScalarBuilder::logicalOr(Value a, Value b) {
  return binary<arith::OrIOp>(a, b);
}

Value ScalarBuilder::logicalNot(Value a) {
  return binary<arith::XOrIOp>(a, boolean(true));
}

Value ScalarBuilder::truth(Value a) {
  if (a.getType().isInteger(1))
    return a;
  return compare(Comparison::ne, a, integer(0));
}

//===----------------------------------------------------------------------===//
// Casts
//===----------------------------------------------------------------------===//

// For a value that doesn't fit, torch's CPU kernels return the result of the
// processor's conversion instruction: the lowest integer on x86; on AArch64,
// the nearest integer, and 0 for NaN.
#if defined(__aarch64__)
static constexpr bool kConversionSaturates = true;
#else
static constexpr bool kConversionSaturates = false;
#endif

/// torch's CPU kernels convert floats to int64 and uint8 in 64 bits, and to the
/// other signed integers in 32 bits, and then truncate the result. They convert
/// floats to the other unsigned integers in 64 bits on x86, and with
/// instructions for unsigned integers on AArch64. LLVM's fptosi is undefined
/// for a value that doesn't fit, so the range is checked.
Value ScalarBuilder::castFloatToInteger(Value value, IntegerType to) {
  bool toUnsigned =
      kConversionSaturates && to.isUnsigned() && to.getWidth() > 8;
  bool wide = to.getWidth() == 64 || (to.isUnsigned() && !toUnsigned);
  int width = wide ? 64 : 32;
  Type widthType = builder.getIntegerType(width);
  ScalarBuilder source(builder, loc, value.getType());
  ScalarBuilder target(builder, loc,
                       IntegerType::get(builder.getContext(), width,
                                        toUnsigned ? IntegerType::Unsigned
                                                   : IntegerType::Signed));
  double above = std::ldexp(1.0, toUnsigned ? width : width - 1);
  double lowest = toUnsigned ? 0.0 : -above;
  Value fits =
      logicalAnd(source.compare(Comparison::ge, value, source.constant(lowest)),
                 source.compare(Comparison::lt, value, source.constant(above)));
  Value safe = select(fits, value, source.constant(0.0));
  Value converted =
      toUnsigned
          ? arith::FPToUIOp::create(builder, loc, widthType, safe).getResult()
          : arith::FPToSIOp::create(builder, loc, widthType, safe).getResult();
  Value otherwise = target.lowest();
  if (kConversionSaturates) {
    Value positive =
        source.compare(Comparison::gt, value, source.constant(0.0));
    otherwise = select(positive, target.highest(), otherwise);
    otherwise = select(source.isNan(value), target.integer(0), otherwise);
  }
  converted = select(fits, converted, otherwise);
  if (to.getWidth() == static_cast<unsigned>(width))
    return converted;
  return arith::TruncIOp::create(builder, loc, storageTypeOf(to), converted);
}

Value ScalarBuilder::castToFloat(Value value, Type from, FloatType to) {
  // Like c10::BFloat16, convert any type to a 16-bit float through float32.
  bool narrow = to.getWidth() == 16;
  Type direct = narrow ? Float32Type::get(builder.getContext()) : Type(to);
  if (auto source = dyn_cast<FloatType>(from)) {
    if (source.getWidth() < direct.getIntOrFloatBitWidth())
      value = arith::ExtFOp::create(builder, loc, direct, value);
    else if (source.getWidth() > direct.getIntOrFloatBitWidth())
      value = arith::TruncFOp::create(builder, loc, direct, value);
  } else if (isUnsigned(from)) {
    value = arith::UIToFPOp::create(builder, loc, direct, value);
  } else {
    value = arith::SIToFPOp::create(builder, loc, direct, value);
  }
  return narrow ? arith::TruncFOp::create(builder, loc, to, value).getResult()
                : value;
}

Value ScalarBuilder::roundedTo(Type narrow, Value value) {
  return convert(convert(value, dtype, narrow), narrow, dtype);
}

Value ScalarBuilder::convert(Value value, Type from, Type to) {
  if (from == to)
    return value;
  if (isBool(to))
    return ScalarBuilder(builder, loc, from).truth(value);
  if (auto floatType = dyn_cast<FloatType>(to))
    return castToFloat(value, from, floatType);
  auto integerType = cast<IntegerType>(to);
  if (isa<FloatType>(from)) {
    if (from.getIntOrFloatBitWidth() == 16)
      value = arith::ExtFOp::create(
          builder, loc, Float32Type::get(builder.getContext()), value);
    return castFloatToInteger(value, integerType);
  }
  Type storage = storageTypeOf(to);
  unsigned fromWidth = from.getIntOrFloatBitWidth();
  if (fromWidth == integerType.getWidth())
    return value;
  if (fromWidth > integerType.getWidth())
    return arith::TruncIOp::create(builder, loc, storage, value);
  if (isUnsigned(from))
    return arith::ExtUIOp::create(builder, loc, storage, value);
  return arith::ExtSIOp::create(builder, loc, storage, value);
}
