//===- ElementwiseSpecial.cpp - Scalar builders of special functions ------===//
//
// erfinv, lgamma and digamma compute in float64 for all dtypes, because their
// formulas would lose too many digits in float32.
//
//===----------------------------------------------------------------------===//

#include "ElementwiseScalar.h"

#include <cmath>
#include <limits>
#include <numbers>

using namespace mlir;
using namespace mlir::torch_ltc;

static constexpr double kInfinity = std::numeric_limits<double>::infinity();
static constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

/// Applies `function` to `operand` as float64 and converts back to the compute
/// dtype.
static Value inDouble(ElementwiseBody &s, Argument operand,
                      function_ref<Value(ScalarBuilder &, Value)> function) {
  Type wide = Float64Type::get(s.builder.getContext());
  ScalarBuilder d(s.builder, s.loc, wide);
  Value result = function(d, s.convert(s.arg(operand), s.dtype, wide));
  return s.convert(result, wide, s.dtype);
}

/// c[0] + c[1] * x + c[2] * x^2 + ...
static Value polynomial(ScalarBuilder &d, Value x,
                        ArrayRef<double> coefficients) {
  Value sum = d.constant(coefficients.back());
  for (double c : llvm::reverse(coefficients.drop_back()))
    sum = d.add(d.mul(sum, x), d.constant(c));
  return sum;
}

//===----------------------------------------------------------------------===//
// erfinv
//===----------------------------------------------------------------------===//

/// Winitzki's approximation, whose error is 0.2 %, refined by two steps of
/// Halley's method for erf(y) = |x|.
Value torch_ltc::emitErfinv(ElementwiseBody &s, ErfinvArguments args) {
  return inDouble(s, args.self, [](ScalarBuilder &d, Value x) {
    constexpr double k = 0.147;
    Value one = d.constant(1), a = d.abs(x);
    Value ln = d.log(d.mul(d.sub(one, a), d.add(one, a)));
    Value t = d.add(d.mul(ln, d.constant(0.5)),
                    d.constant(2 / (std::numbers::pi * k)));
    Value root =
        d.unary<math::SqrtOp>(d.sub(d.square(t), d.mul(ln, d.constant(1 / k))));
    Value y = d.unary<math::SqrtOp>(d.sub(root, t));
    Value isNearOne = d.compare(Comparison::gt, a, d.constant(0.5));
    constexpr double slopeAtZero = 2 * std::numbers::inv_sqrtpi;
    for (int step = 0; step < 2; ++step) {
      Value slope = d.mul(d.exp(d.neg(d.square(y))), d.constant(slopeAtZero));
      // Near 1, the complements 1 - |x| and erfc(y) keep more digits.
      Value error =
          d.select(isNearOne, d.sub(d.sub(one, a), d.unary<math::ErfcOp>(y)),
                   d.sub(d.unary<math::ErfOp>(y), a));
      Value newton = d.div(error, slope);
      y = d.sub(y, d.div(newton, d.add(one, d.mul(y, newton))));
    }
    Value isOne = d.compare(Comparison::eq, a, one);
    return d.copySign(d.select(isOne, d.constant(kInfinity), y), x);
  });
}

//===----------------------------------------------------------------------===//
// lgamma, digamma: series at infinity, recurrence, reflection
//===----------------------------------------------------------------------===//

namespace {
// The operand, reflected and shifted to where the series is accurate enough.
struct GammaOperand {
  /// Whether the operand is below 0.5, its distance to the nearest integer, and
  /// whether it is below that integer.
  Value isReflected, distance, isBelow;
  /// z: the operand, or 1 - operand if it is reflected. w: z plus the shift,
  /// greater than kShift.
  Value z, w;
  /// Whether z is large enough without a shift.
  Value isLarge;
};
} // namespace

static constexpr int kShift = 8;

static GammaOperand reflectAndShift(ScalarBuilder &d, Value x) {
  GammaOperand g;
  g.isReflected = d.compare(Comparison::lt, x, d.constant(0.5));
  // This difference is exact, so results near the poles below 0 are accurate.
  Value nearest = d.unary<math::RoundEvenOp>(x);
  g.isBelow = d.compare(Comparison::lt, x, nearest);
  g.distance = d.abs(d.sub(x, nearest));
  g.z = d.select(g.isReflected, d.sub(d.constant(1), x), x);
  g.isLarge = d.compare(Comparison::gt, g.z, d.constant(20));
  g.w = d.select(g.isLarge, g.z, d.add(g.z, d.constant(kShift)));
  return g;
}

Value torch_ltc::emitLgamma(ElementwiseBody &s, LgammaArguments args) {
  return inDouble(s, args.self, [](ScalarBuilder &d, Value x) {
    GammaOperand g = reflectAndShift(d, x);
    Value product = g.z;
    for (int i = 1; i < kShift; ++i)
      product = d.mul(product, d.add(g.z, d.constant(i)));
    product = d.select(g.isLarge, d.constant(1), product);
    Value inverse = d.div(d.constant(1), g.w);
    Value series =
        d.mul(inverse, polynomial(d, d.square(inverse),
                                  {1.0 / 12, -1.0 / 360, 1.0 / 1260,
                                   -1.0 / 1680, 1.0 / 1188, -691.0 / 360360}));
    Value stirling = d.sub(d.mul(d.sub(g.w, d.constant(0.5)), d.log(g.w)), g.w);
    Value half = d.constant(0.5 * std::log(2 * std::numbers::pi));
    Value direct = d.sub(d.add(d.add(stirling, half), series), d.log(product));
    Value sine =
        d.unary<math::SinOp>(d.mul(g.distance, d.constant(std::numbers::pi)));
    // Near a pole, use -log(distance): the quotient by a denormal sine would be
    // infinite.
    Value isNearPole = d.compare(Comparison::lt, g.distance, d.constant(1e-30));
    Value mirror = d.select(isNearPole, d.neg(d.log(g.distance)),
                            d.log(d.div(d.constant(std::numbers::pi), sine)));
    Value result = d.select(g.isReflected, d.sub(mirror, direct), direct);
    // Return an infinity at each pole: at a large pole, `mirror` and `direct`
    // are infinite, and their difference is NaN.
    Value isPole = d.logicalAnd(
        g.isReflected, d.compare(Comparison::eq, g.distance, d.constant(0)));
    Value isInfinite = d.logicalOr(
        isPole, d.compare(Comparison::eq, d.abs(x), d.constant(kInfinity)));
    // At 1 and 2, the result is exactly 0, as in eager: a program that divides
    // by it gets an infinity.
    Value isRoot = d.logicalOr(d.compare(Comparison::eq, x, d.constant(1)),
                               d.compare(Comparison::eq, x, d.constant(2)));
    result = d.select(isRoot, d.constant(0), result);
    return d.select(isInfinite, d.constant(kInfinity), result);
  });
}

Value torch_ltc::emitDigamma(ElementwiseBody &s, DigammaArguments args) {
  return inDouble(s, args.self, [](ScalarBuilder &d, Value x) {
    GammaOperand g = reflectAndShift(d, x);
    Value one = d.constant(1), sum = d.div(one, g.z);
    for (int i = 1; i < kShift; ++i)
      sum = d.add(sum, d.div(one, d.add(g.z, d.constant(i))));
    sum = d.select(g.isLarge, d.constant(0), sum);
    Value inverse = d.div(one, g.w), square = d.square(inverse);
    Value series =
        d.mul(square, polynomial(d, square,
                                 {1.0 / 12, -1.0 / 120, 1.0 / 252, -1.0 / 240,
                                  1.0 / 132, -691.0 / 32760}));
    Value direct = d.sub(d.log(g.w), d.mul(inverse, d.constant(0.5)));
    direct = d.sub(d.sub(direct, series), sum);
    Value cotangent = d.div(
        d.constant(std::numbers::pi),
        d.unary<math::TanOp>(d.mul(g.distance, d.constant(std::numbers::pi))));
    cotangent = d.select(g.isBelow, d.neg(cotangent), cotangent);
    Value result = d.select(g.isReflected, d.sub(direct, cotangent), direct);
    // torch returns NaN at the poles below 0, and an infinity at 0.
    Value zero = d.constant(0);
    Value isPole = d.logicalAnd(d.compare(Comparison::eq, g.distance, zero),
                                d.compare(Comparison::lt, x, zero));
    result = d.select(isPole, d.constant(kNaN), result);
    return d.select(d.compare(Comparison::eq, x, zero),
                    d.copySign(d.constant(kInfinity), d.neg(x)), result);
  });
}

//===----------------------------------------------------------------------===//
// Functions without series
//===----------------------------------------------------------------------===//

Value torch_ltc::emitRoundDecimals(ElementwiseBody &s,
                                   RoundDecimalsArguments args) {
  Value x = s.arg(args.self);
  double decimals = *s.known(args.decimals);
  Value scale = s.constant(std::pow(10.0, std::abs(decimals)));
  auto round = [&](Value value) { return s.unary<math::RoundEvenOp>(value); };
  if (decimals < 0)
    return s.mul(round(s.div(x, scale)), scale);
  return s.div(round(s.mul(x, scale)), scale);
}

/// The angle of a real number: 0 or pi, or NaN for NaN.
Value torch_ltc::emitAngle(ElementwiseBody &s, AngleArguments args) {
  Value x = s.arg(args.self), zero = s.constant(0);
  Value isNegative = s.compare(Comparison::lt, x, zero);
  Value angle = s.select(isNegative, s.constant(std::numbers::pi), zero);
  return s.select(s.isNan(x), x, angle);
}
