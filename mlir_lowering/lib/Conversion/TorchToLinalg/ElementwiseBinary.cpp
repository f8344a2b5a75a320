//===- ElementwiseBinary.cpp - Scalar builders with several operands ------===//

#include "ElementwiseScalar.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

#include <cmath>
#include <numbers>

using namespace mlir;
using namespace mlir::torch_ltc;

//===----------------------------------------------------------------------===//
// Arithmetic
//===----------------------------------------------------------------------===//

/// Multiplies `operand` by the number `alpha`.
static Value scaled(ElementwiseBody &s, Argument alpha, Value operand) {
  return s.isConstant(alpha, 1) ? operand : s.mul(s.arg(alpha), operand);
}

/// Like `scaled`, but first rounds alpha to a 16-bit result dtype, as eager's
/// vectorized sums do.
static Value scaledTerm(ElementwiseBody &s, Argument alpha, Value operand) {
  Type common = s.op.resultDtype();
  if (s.isConstant(alpha, 1) || common == s.dtype)
    return scaled(s, alpha, operand);
  Value rounded = s.convert(s.arg(alpha), s.dtype, common);
  return s.mul(s.convert(rounded, common, s.dtype), operand);
}

Value torch_ltc::emitAdd(ElementwiseBody &s, AddArguments args) {
  return s.add(s.arg(args.self), scaledTerm(s, args.alpha, s.arg(args.other)));
}

Value torch_ltc::emitSub(ElementwiseBody &s, SubArguments args) {
  return s.sub(s.arg(args.self), scaledTerm(s, args.alpha, s.arg(args.other)));
}

Value torch_ltc::emitRsub(ElementwiseBody &s, RsubArguments args) {
  return s.sub(s.rounded(s.arg(args.other)),
               scaledTerm(s, args.alpha, s.arg(args.self)));
}

/// A factor or divisor. torch 2.13 doesn't round a number or a tensor of rank 0
/// by which it multiplies or divides 16-bit floats; kernels of other ops first
/// round such an operand to 16 bits.
static Value exactFactor(ElementwiseBody &s, Argument factor) {
  std::optional<NumberOperand> number;
  if (s.isFloat() && s.isTensor(factor))
    number = s.op.tensorAsNumber(factor.operand);
  return number ? number->materialize(s.builder, s.loc, s.dtype)
                : s.exactArg(factor);
}

Value torch_ltc::emitMul(ElementwiseBody &s, MulArguments args) {
  return s.mul(s.arg(args.self), exactFactor(s, args.other));
}

static Value quotient(ElementwiseBody &s, Argument self, Argument other) {
  return s.div(s.arg(self), exactFactor(s, other));
}

Value torch_ltc::emitDiv(ElementwiseBody &s, DivArguments args) {
  return quotient(s, args.self, args.other);
}

/// Whether the divisor is a number or has one element: torch then divides
/// 16-bit floats in float32; otherwise it rounds after each step.
static bool isOneNumber(ElementwiseBody &s, Argument divisor) {
  return !s.isTensor(divisor) ||
         llvm::all_of(s.op.sizes(divisor.operand),
                      [](int64_t size) { return size == 1; });
}

static Value floorQuotient(ElementwiseBody &s, Argument self, Argument other) {
  return isOneNumber(s, other) ? s.floorDiv(s.arg(self), exactFactor(s, other))
                               : s.floorDivInSteps(s.arg(self), s.arg(other));
}

Value torch_ltc::emitFloorDivide(ElementwiseBody &s,
                                 FloorDivideArguments args) {
  return floorQuotient(s, args.self, args.other);
}

Value torch_ltc::emitDivMode(ElementwiseBody &s, DivModeArguments args) {
  StringRef mode = s.op.optionalString(args.roundingMode.operand, "");
  if (mode == "floor")
    return floorQuotient(s, args.self, args.other);
  Value exact = quotient(s, args.self, args.other);
  if (mode == "trunc" && s.isFloat())
    return s.unary<math::TruncOp>(
        isOneNumber(s, args.other) ? exact : s.rounded(exact));
  return exact;
}

Value torch_ltc::emitRemainder(ElementwiseBody &s, RemainderArguments args) {
  return s.floorRemainder(s.rounded(s.arg(args.self)),
                          s.rounded(s.arg(args.other)));
}

Value torch_ltc::emitFmod(ElementwiseBody &s, FmodArguments args) {
  return s.truncRemainder(s.arg(args.self), s.rounded(s.arg(args.other)));
}

//===----------------------------------------------------------------------===//
// Powers
//===----------------------------------------------------------------------===//

/// base ** exponent for exponent >= 0, by repeated squaring; wraps on overflow.
static Value unsignedPower(ElementwiseBody &s, Value base, Value exponent) {
  unsigned bits = s.dtype.getIntOrFloatBitWidth();
  auto loop = scf::ForOp::create(
      s.builder, s.loc, s.index(0), s.index(bits), s.index(1),
      ValueRange{s.integer(1), base, exponent},
      [&](OpBuilder &nested, Location loc, Value, ValueRange carried) {
        ScalarBuilder b(nested, loc, s.dtype);
        Value bit = b.binary<arith::AndIOp>(carried[2], b.integer(1));
        Value product = b.mul(carried[0], carried[1]);
        Value power = b.select(b.truth(bit), product, carried[0]);
        Value rest = b.binary<arith::ShRUIOp>(carried[2], b.integer(1));
        scf::YieldOp::create(nested, loc,
                             ValueRange{power, b.square(carried[1]), rest});
      });
  return loop.getResult(0);
}

static Value integerPower(ElementwiseBody &s, PowArguments args) {
  if (isBool(s.dtype)) {
    // False ** True is the only combination that isn't True.
    return s.logicalOr(s.arg(args.self), s.logicalNot(s.arg(args.exponent)));
  }
  Value base = s.arg(args.self), exponent = s.arg(args.exponent);
  Value power = unsignedPower(s, base, exponent);
  if (isUnsigned(s.dtype))
    return power;
  // Only 1 and -1 have inverses; torch returns 0 for other bases.
  Value one = s.integer(1), minusOne = s.integer(-1), zero = s.integer(0);
  Value odd = s.truth(s.binary<arith::AndIOp>(exponent, one));
  Value ofMinusOne = s.select(odd, minusOne, one);
  Value inverse =
      s.select(s.compare(Comparison::eq, base, minusOne), ofMinusOne, zero);
  inverse = s.select(s.compare(Comparison::eq, base, one), one, inverse);
  Value isNegative = s.compare(Comparison::lt, exponent, zero);
  return s.select(isNegative, inverse, power);
}

/// x * x as an intermediate result of pow, which torch 2.13 rounds to bfloat16,
/// but not to float16.
static Value squareInPower(ElementwiseBody &s, Value x) {
  return s.isBFloat16() ? s.rounded(s.square(x)) : s.square(x);
}

/// Either operand may be a number.
Value torch_ltc::emitPow(ElementwiseBody &s, PowArguments args) {
  if (!s.isFloat())
    return integerPower(s, args);
  Value one = s.constant(1);
  Value x = s.rounded(s.arg(args.self));
  // torch's pow kernel has special cases for these exponents.
  std::optional<double> exponent = s.known(args.exponent);
  if (exponent == 0.0)
    return one;
  if (exponent == 1.0)
    return x;
  if (exponent == 0.5)
    return s.unary<math::SqrtOp>(x);
  if (exponent == 2.0)
    return s.square(x);
  if (exponent == 3.0)
    return s.mul(squareInPower(s, x), x);
  if (exponent == -0.5)
    return s.unary<math::RsqrtOp>(x);
  if (exponent == -1.0)
    return s.div(one, x);
  if (exponent == -2.0)
    return s.div(one, squareInPower(s, x));
  Value power = s.binary<math::PowFOp>(x, s.rounded(s.arg(args.exponent)));
  if (exponent || s.isTensor(args.exponent))
    return power;
  // The exponent is a dynamic scalar. At -0 and -inf, sqrt and rsqrt differ
  // from powf; the formulas of the other special exponents don't.
  auto replaceAt = [&](double root, Value value) {
    Value isRoot =
        s.compare(Comparison::eq, s.arg(args.exponent), s.constant(root));
    power = s.select(isRoot, value, power);
  };
  replaceAt(0.5, s.unary<math::SqrtOp>(x));
  replaceAt(-0.5, s.unary<math::RsqrtOp>(x));
  return power;
}

//===----------------------------------------------------------------------===//
// Functions of two numbers
//===----------------------------------------------------------------------===//

Value torch_ltc::emitAtan2(ElementwiseBody &s, Atan2Arguments args) {
  Value y = s.arg(args.self), x = s.arg(args.other), zero = s.constant(0);
  // Compute atan2 of two zeros separately: MLIR 22 folds it to NaN.
  Value areZero = s.logicalAnd(s.compare(Comparison::eq, y, zero),
                               s.compare(Comparison::eq, x, zero));
  Value straight = s.select(s.signBit(x), s.constant(std::numbers::pi), zero);
  return s.select(areZero, s.copySign(straight, y),
                  s.binary<math::Atan2Op>(y, x));
}

Value torch_ltc::emitXlogy(ElementwiseBody &s, XlogyArguments args) {
  Value x = s.rounded(s.arg(args.self)), y = s.rounded(s.arg(args.other));
  Value zero = s.constant(0);
  Value product = s.mul(x, s.rounded(s.log(y)));
  Value isZero = s.compare(Comparison::eq, x, zero);
  return s.select(s.isNan(y), y, s.select(isZero, zero, product));
}

Value torch_ltc::emitCopysign(ElementwiseBody &s, CopysignArguments args) {
  return s.copySign(s.arg(args.self), s.arg(args.other));
}

/// Whether `x`, which isn't negative, is infinite.
static Value isInfinite(ElementwiseBody &s, Value x) {
  double infinity = std::numeric_limits<double>::infinity();
  return s.compare(Comparison::eq, x, s.constant(infinity));
}

/// The root of the sum of two float32 squares, which neither overflow nor lose
/// digits as doubles. PyTorch's result is rounded correctly, too.
static Value rootOfWideSquares(ElementwiseBody &s, Value x, Value y) {
  ScalarBuilder wide(s.builder, s.loc, s.builder.getF64Type());
  Value a = s.convert(x, s.dtype, wide.dtype);
  Value b = s.convert(y, s.dtype, wide.dtype);
  Value root =
      wide.unary<math::SqrtOp>(wide.add(wide.square(a), wide.square(b)));
  return s.convert(root, wide.dtype, s.dtype);
}

Value torch_ltc::emitHypot(ElementwiseBody &s, HypotArguments args) {
  Value x = s.abs(s.arg(args.self)), y = s.abs(s.arg(args.other));
  if (s.dtype.isF32())
    return s.select(isInfinite(s, s.maxNumber(x, y)), s.maxNumber(x, y),
                    rootOfWideSquares(s, x, y));
  Value larger = s.maximum(x, y), smaller = s.minimum(x, y);
  Value ratio = s.div(smaller, larger);
  Value root = s.unary<math::SqrtOp>(s.add(s.constant(1), s.square(ratio)));
  // Return the larger operand if it is 0 or infinite: the ratios 0 / 0 and
  // inf / inf are NaN.
  Value noRatio = s.logicalOr(s.compare(Comparison::eq, larger, s.constant(0)),
                              isInfinite(s, s.maxNumber(x, y)));
  return s.select(noRatio, s.maxNumber(x, y), s.mul(larger, root));
}

/// The logarithm to `base` of base^a + base^b; `scale` is ln(base).
static Value logOfSum(ElementwiseBody &s, Value a, Value b, double scale) {
  Value difference = s.neg(s.abs(s.sub(a, b)));
  if (scale != 1)
    difference = s.mul(difference, s.constant(scale));
  Value correction = s.unary<math::Log1pOp>(s.exp(difference));
  if (scale != 1)
    correction = s.mul(correction, s.constant(1 / scale));
  Value sum = s.add(s.maximum(a, b), correction);
  // If both operands are the same infinity, return it: their difference is NaN.
  double infinity = std::numeric_limits<double>::infinity();
  Value equalInfinities =
      s.logicalAnd(s.compare(Comparison::eq, a, b),
                   s.compare(Comparison::eq, s.abs(a), s.constant(infinity)));
  return s.select(equalInfinities, a, sum);
}

Value torch_ltc::emitLogaddexp(ElementwiseBody &s, LogaddexpArguments args) {
  return logOfSum(s, s.arg(args.self), s.arg(args.other), 1);
}
Value torch_ltc::emitLogaddexp2(ElementwiseBody &s, Logaddexp2Arguments args) {
  return logOfSum(s, s.arg(args.self), s.arg(args.other), std::numbers::ln2);
}

Value torch_ltc::emitHeaviside(ElementwiseBody &s, HeavisideArguments args) {
  Value x = s.arg(args.self), zero = s.integer(0);
  Value step = s.select(s.compare(Comparison::gt, x, zero), s.integer(1), zero);
  return s.select(s.truth(x), step, s.arg(args.values));
}

Value torch_ltc::emitMaximum(ElementwiseBody &s, MaximumArguments args) {
  return s.laterMaximum(s.arg(args.self), s.arg(args.other));
}
Value torch_ltc::emitMinimum(ElementwiseBody &s, MinimumArguments args) {
  return s.laterMinimum(s.arg(args.self), s.arg(args.other));
}
Value torch_ltc::emitFmax(ElementwiseBody &s, FmaxArguments args) {
  return s.maxNumber(s.arg(args.self), s.arg(args.other));
}
Value torch_ltc::emitFmin(ElementwiseBody &s, FminArguments args) {
  return s.minNumber(s.arg(args.self), s.arg(args.other));
}

//===----------------------------------------------------------------------===//
// Comparisons, logic, bits
//===----------------------------------------------------------------------===//

#define COMPARISON(name, comparison)                                           \
  Value torch_ltc::emit##name(ElementwiseBody &s, name##Arguments args) {      \
    return s.compare(Comparison::comparison, s.arg(args.self),                 \
                     s.arg(args.other));                                       \
  }
COMPARISON(Eq, eq)
COMPARISON(Ne, ne)
COMPARISON(Lt, lt)
COMPARISON(Le, le)
COMPARISON(Gt, gt)
COMPARISON(Ge, ge)
#undef COMPARISON

#define BIT_OP(name, Op, operand)                                              \
  Value torch_ltc::emit##name(ElementwiseBody &s, name##Arguments args) {      \
    return s.binary<arith::Op>(s.operand(args.self), s.operand(args.other));   \
  }
BIT_OP(LogicalAnd, AndIOp, argAsBool)
BIT_OP(LogicalOr, OrIOp, argAsBool)
BIT_OP(LogicalXor, XOrIOp, argAsBool)
BIT_OP(BitwiseAnd, AndIOp, arg)
BIT_OP(BitwiseOr, OrIOp, arg)
BIT_OP(BitwiseXor, XOrIOp, arg)
#undef BIT_OP

/// Whether `count` is in [0, width of the dtype). For other counts, torch's
/// result is 0, or -1 for a negative number that is shifted right.
static Value isShiftInRange(ElementwiseBody &s, Value count) {
  Value bits = s.integer(s.dtype.getIntOrFloatBitWidth());
  return arith::CmpIOp::create(s.builder, s.loc, arith::CmpIPredicate::ult,
                               count, bits);
}

Value torch_ltc::emitBitwiseLeftShift(ElementwiseBody &s,
                                      BitwiseLeftShiftArguments args) {
  Value x = s.arg(args.self), count = s.arg(args.other), zero = s.integer(0);
  Value inRange = isShiftInRange(s, count);
  Value shifted = s.binary<arith::ShLIOp>(x, s.select(inRange, count, zero));
  return s.select(inRange, shifted, zero);
}

Value torch_ltc::emitBitwiseRightShift(ElementwiseBody &s,
                                       BitwiseRightShiftArguments args) {
  Value x = s.arg(args.self), count = s.arg(args.other);
  Value inRange = isShiftInRange(s, count);
  if (isUnsigned(s.dtype)) {
    Value zero = s.integer(0);
    Value shifted = s.binary<arith::ShRUIOp>(x, s.select(inRange, count, zero));
    return s.select(inRange, shifted, zero);
  }
  Value last = s.integer(s.dtype.getIntOrFloatBitWidth() - 1);
  return s.binary<arith::ShRSIOp>(x, s.select(inRange, count, last));
}

//===----------------------------------------------------------------------===//
// Selection
//===----------------------------------------------------------------------===//

Value torch_ltc::emitWhere(ElementwiseBody &s, WhereArguments args) {
  return s.select(s.argAsBool(args.condition), s.arg(args.self),
                  s.arg(args.other));
}

Value torch_ltc::emitMaskedFill(ElementwiseBody &s, MaskedFillArguments args) {
  return s.select(s.argAsBool(args.mask), s.arg(args.value), s.arg(args.self));
}

/// The greater of x and the bound. If both are zero, whatever their signs,
/// torch returns the bound if the bound is a tensor, and x if the bound is a
/// number.
static Value lowerBounded(ElementwiseBody &s, Value x, Argument bound) {
  return s.isTensor(bound) ? s.laterMaximum(x, s.arg(bound))
                           : s.atLeast(x, s.arg(bound));
}

static Value upperBounded(ElementwiseBody &s, Value x, Argument bound) {
  return s.isTensor(bound) ? s.laterMinimum(x, s.arg(bound))
                           : s.atMost(x, s.arg(bound));
}

Value torch_ltc::emitClampMin(ElementwiseBody &s, ClampMinArguments args) {
  return lowerBounded(s, s.arg(args.self), args.min);
}

Value torch_ltc::emitClampMax(ElementwiseBody &s, ClampMaxArguments args) {
  return upperBounded(s, s.arg(args.self), args.max);
}

/// NaN stays NaN, and max wins if it is less than min.
Value torch_ltc::emitClamp(ElementwiseBody &s, ClampArguments args) {
  Value x = s.arg(args.self);
  if (s.has(args.min))
    x = lowerBounded(s, x, args.min);
  return s.has(args.max) ? upperBounded(s, x, args.max) : x;
}

//===----------------------------------------------------------------------===//
// Functions of three numbers
//===----------------------------------------------------------------------===//

/// Interpolates from the nearer end, like torch.
Value torch_ltc::emitLerp(ElementwiseBody &s, LerpArguments args) {
  Value start = s.arg(args.self), end = s.arg(args.end),
        weight = s.arg(args.weight);
  Value difference = s.sub(end, start);
  Value fromStart = s.add(start, s.mul(weight, difference));
  Value fromEnd = s.sub(end, s.mul(difference, s.sub(s.constant(1), weight)));
  if (std::optional<double> known = s.known(args.weight))
    return std::fabs(*known) < 0.5 ? fromStart : fromEnd;
  Value nearStart = s.compare(Comparison::lt, s.abs(weight), s.constant(0.5));
  return s.select(nearStart, fromStart, fromEnd);
}

Value torch_ltc::emitAddcmul(ElementwiseBody &s, AddcmulArguments args) {
  return s.add(
      s.arg(args.self),
      s.mul(scaled(s, args.value, s.arg(args.tensor1)), s.arg(args.tensor2)));
}

Value torch_ltc::emitAddcdiv(ElementwiseBody &s, AddcdivArguments args) {
  return s.add(
      s.arg(args.self),
      s.div(scaled(s, args.value, s.arg(args.tensor1)), s.arg(args.tensor2)));
}
