//===- ElementwiseActivation.cpp - Scalar builders of activations ---------===//
//
// Each backward function follows its forward function.
//
//===----------------------------------------------------------------------===//

#include "ElementwiseScalar.h"

#include <limits>

#include <numbers>

using namespace mlir;
using namespace mlir::torch_ltc;

static Value less(ElementwiseBody &s, Value a, Value b) {
  return s.compare(Comparison::lt, a, b);
}

static Value lessEqual(ElementwiseBody &s, Value a, Value b) {
  return s.compare(Comparison::le, a, b);
}

static Value greater(ElementwiseBody &s, Value a, Value b) {
  return s.compare(Comparison::gt, a, b);
}

static Value sigmoidOf(ElementwiseBody &s, Value x) {
  Value one = s.constant(1);
  return s.div(one, s.add(one, s.exp(s.neg(x))));
}

static Value log1pExp(ElementwiseBody &s, Value x) {
  return s.unary<math::Log1pOp>(s.exp(x));
}

//===----------------------------------------------------------------------===//
// ReLU and its relatives
//===----------------------------------------------------------------------===//

Value torch_ltc::emitRelu(ElementwiseBody &s, ReluArguments args) {
  // Unlike maximum(x, 0), this comparison preserves NaN and -0.
  Value x = s.arg(args.self), zero = s.integer(0);
  return s.select(less(s, x, zero), zero, x);
}

Value torch_ltc::emitThreshold(ElementwiseBody &s, ThresholdArguments args) {
  Value x = s.arg(args.self);
  return s.select(lessEqual(s, x, s.arg(args.threshold)), s.arg(args.value), x);
}

Value torch_ltc::emitThresholdBackward(ElementwiseBody &s,
                                       ThresholdBackwardArguments args) {
  return s.select(lessEqual(s, s.arg(args.self), s.arg(args.threshold)),
                  s.integer(0), s.arg(args.gradOutput));
}

Value torch_ltc::emitLeakyRelu(ElementwiseBody &s, LeakyReluArguments args) {
  Value x = s.arg(args.self);
  return s.select(greater(s, x, s.constant(0)), x,
                  s.mul(x, s.arg(args.negativeSlope)));
}

Value torch_ltc::emitLeakyReluBackward(ElementwiseBody &s,
                                       LeakyReluBackwardArguments args) {
  Value gradient = s.arg(args.gradOutput);
  return s.select(greater(s, s.arg(args.self), s.constant(0)), gradient,
                  s.mul(gradient, s.arg(args.negativeSlope)));
}

Value torch_ltc::emitPrelu(ElementwiseBody &s, PreluArguments args) {
  Value x = s.arg(args.self);
  return s.select(greater(s, x, s.constant(0)), x,
                  s.mul(s.arg(args.weight), x));
}

Value torch_ltc::emitHardtanh(ElementwiseBody &s, HardtanhArguments args) {
  return s.atMost(s.atLeast(s.arg(args.self), s.arg(args.minVal)),
                  s.arg(args.maxVal));
}

Value torch_ltc::emitHardtanhBackward(ElementwiseBody &s,
                                      HardtanhBackwardArguments args) {
  Value x = s.arg(args.self);
  Value inside = s.logicalAnd(greater(s, x, s.arg(args.minVal)),
                              less(s, x, s.arg(args.maxVal)));
  return s.select(inside, s.arg(args.gradOutput), s.integer(0));
}

/// min(max(x + 3, 0), 6)
static Value clampedRamp(ElementwiseBody &s, Value x) {
  Value shifted = s.add(x, s.constant(3));
  return s.minimum(s.maximum(shifted, s.constant(0)), s.constant(6));
}

Value torch_ltc::emitHardsigmoid(ElementwiseBody &s,
                                 HardsigmoidArguments args) {
  return s.div(clampedRamp(s, s.arg(args.self)), s.constant(6));
}

Value torch_ltc::emitHardsigmoidBackward(ElementwiseBody &s,
                                         HardsigmoidBackwardArguments args) {
  Value x = s.arg(args.self);
  Value inside =
      s.logicalAnd(greater(s, x, s.constant(-3)), less(s, x, s.constant(3)));
  // torch's 1/6 is a float32, even for doubles.
  Value sixth = s.constant(1.0f / 6.0f);
  return s.select(inside, s.mul(s.arg(args.gradOutput), sixth), s.constant(0));
}

Value torch_ltc::emitHardswish(ElementwiseBody &s, HardswishArguments args) {
  Value x = s.arg(args.self);
  return s.div(s.mul(x, clampedRamp(s, x)), s.constant(6));
}

Value torch_ltc::emitHardswishBackward(ElementwiseBody &s,
                                       HardswishBackwardArguments args) {
  Value gradient = s.arg(args.gradOutput), x = s.arg(args.self);
  Value slope = s.add(s.div(x, s.constant(3)), s.constant(0.5));
  Value result = s.select(s.compare(Comparison::ge, x, s.constant(3)), gradient,
                          s.mul(gradient, slope));
  return s.select(lessEqual(s, x, s.constant(-3)), s.constant(0), result);
}

/// Whether -lambda <= x <= lambda.
static Value isSmall(ElementwiseBody &s, Value x, Value lambda) {
  return s.logicalAnd(s.compare(Comparison::ge, x, s.neg(lambda)),
                      lessEqual(s, x, lambda));
}

Value torch_ltc::emitHardshrink(ElementwiseBody &s, HardshrinkArguments args) {
  Value x = s.arg(args.self), lambda = s.rounded(s.arg(args.lambd));
  return s.select(isSmall(s, x, lambda), s.constant(0), x);
}

static Value shrinkBackward(ElementwiseBody &s, Argument gradient,
                            Argument self, Argument lambd) {
  Value x = s.arg(self), lambda = s.rounded(s.arg(lambd));
  Value isLarge = s.logicalOr(less(s, x, s.neg(lambda)), greater(s, x, lambda));
  return s.select(isLarge, s.arg(gradient), s.constant(0));
}

Value torch_ltc::emitHardshrinkBackward(ElementwiseBody &s,
                                        HardshrinkBackwardArguments args) {
  return shrinkBackward(s, args.gradOut, args.self, args.lambd);
}

Value torch_ltc::emitSoftshrink(ElementwiseBody &s, SoftshrinkArguments args) {
  Value x = s.arg(args.self), lambda = s.arg(args.lambd);
  Value small = s.select(s.isNan(x), x, s.constant(0));
  Value below = s.select(less(s, x, s.neg(lambda)), s.add(x, lambda), small);
  return s.select(greater(s, x, lambda), s.sub(x, lambda), below);
}

Value torch_ltc::emitSoftshrinkBackward(ElementwiseBody &s,
                                        SoftshrinkBackwardArguments args) {
  return shrinkBackward(s, args.gradOutput, args.self, args.lambd);
}

//===----------------------------------------------------------------------===//
// Sigmoid and tanh
//===----------------------------------------------------------------------===//

Value torch_ltc::emitSigmoid(ElementwiseBody &s, SigmoidArguments args) {
  return sigmoidOf(s, s.arg(args.self));
}

/// The logit is constant outside [eps, 1 - eps]; without eps, it is NaN outside
/// [0, 1].
Value torch_ltc::emitLogitBackward(ElementwiseBody &s,
                                   LogitBackwardArguments args) {
  Value grad = s.arg(args.gradOutput), x = s.arg(args.self),
        one = s.constant(1);
  Value low = s.has(args.eps) ? s.arg(args.eps) : s.constant(0);
  Value outside = s.has(args.eps)
                      ? s.constant(0)
                      : s.constant(std::numeric_limits<double>::quiet_NaN());
  Value isOutside = s.logicalOr(s.compare(Comparison::lt, x, low),
                                s.compare(Comparison::gt, x, s.sub(one, low)));
  // With abs, the slopes at -0 and at 0 have the same sign.
  Value slope = s.div(grad, s.abs(s.mul(x, s.sub(one, x))));
  return s.select(isOutside, outside, slope);
}

Value torch_ltc::emitSigmoidBackward(ElementwiseBody &s,
                                     SigmoidBackwardArguments args) {
  Value y = s.arg(args.output);
  return s.mul(s.mul(s.arg(args.gradOutput), s.sub(s.constant(1), y)), y);
}

Value torch_ltc::emitTanhBackward(ElementwiseBody &s,
                                  TanhBackwardArguments args) {
  return s.mul(s.arg(args.gradOutput),
               s.sub(s.constant(1), s.square(s.arg(args.output))));
}

/// The contents of the buffer are recomputed.
Value torch_ltc::emitLogSigmoidBackward(ElementwiseBody &s,
                                        LogSigmoidBackwardArguments args) {
  Value x = s.arg(args.self), one = s.constant(1), zero = s.constant(0);
  Value isNegative = less(s, x, zero);
  Value z = s.exp(s.neg(s.abs(x)));
  Value ratio = s.div(z, s.add(one, z));
  Value derivative =
      s.select(isNegative, s.sub(one, ratio), s.add(zero, ratio));
  return s.mul(s.arg(args.gradOutput), derivative);
}

//===----------------------------------------------------------------------===//
// Exponential units
//===----------------------------------------------------------------------===//

Value torch_ltc::emitElu(ElementwiseBody &s, EluArguments args) {
  Value x = s.arg(args.self);
  Value scaledInput = s.mul(x, s.arg(args.inputScale));
  Value negative = s.mul(s.unary<math::ExpM1Op>(scaledInput),
                         s.mul(s.arg(args.alpha), s.arg(args.scale)));
  return s.select(less(s, x, s.constant(0)), negative,
                  s.mul(x, s.arg(args.scale)));
}

Value torch_ltc::emitEluBackward(ElementwiseBody &s,
                                 EluBackwardArguments args) {
  Value gradient = s.arg(args.gradOutput), x = s.arg(args.selfOrResult);
  Value coefficient = s.mul(s.arg(args.alpha), s.arg(args.scale)),
        inputScale = s.arg(args.inputScale);
  Value scaledGradient = s.mul(gradient, inputScale);
  Value negative = s.op.boolean(args.isResult.operand)
                       ? s.mul(scaledGradient, s.add(x, coefficient))
                       : s.mul(s.mul(scaledGradient, coefficient),
                               s.exp(s.mul(x, inputScale)));
  return s.select(greater(s, x, s.constant(0)),
                  s.mul(gradient, s.arg(args.scale)), negative);
}

Value torch_ltc::emitCelu(ElementwiseBody &s, CeluArguments args) {
  Value x = s.arg(args.self), alpha = s.arg(args.alpha);
  Value inverse = s.div(s.constant(1), alpha);
  Value negative = s.mul(alpha, s.unary<math::ExpM1Op>(s.mul(x, inverse)));
  return s.select(less(s, x, s.constant(0)), negative, x);
}

Value torch_ltc::emitSoftplus(ElementwiseBody &s, SoftplusArguments args) {
  Value x = s.arg(args.self), beta = s.arg(args.beta);
  Value scaledInput = s.mul(x, beta);
  return s.select(greater(s, scaledInput, s.arg(args.threshold)), x,
                  s.div(log1pExp(s, scaledInput), beta));
}

Value torch_ltc::emitSoftplusBackward(ElementwiseBody &s,
                                      SoftplusBackwardArguments args) {
  Value gradient = s.arg(args.gradOutput);
  Value scaledInput = s.mul(s.arg(args.self), s.arg(args.beta));
  Value z = s.exp(scaledInput);
  Value slope = s.div(s.mul(gradient, z), s.add(z, s.constant(1)));
  return s.select(greater(s, scaledInput, s.arg(args.threshold)), gradient,
                  slope);
}

//===----------------------------------------------------------------------===//
// Smooth gates: SiLU, Mish, GELU
//===----------------------------------------------------------------------===//

Value torch_ltc::emitSilu(ElementwiseBody &s, SiluArguments args) {
  Value x = s.arg(args.self);
  return s.div(x, s.add(s.constant(1), s.exp(s.neg(x))));
}

Value torch_ltc::emitSiluBackward(ElementwiseBody &s,
                                  SiluBackwardArguments args) {
  Value x = s.arg(args.self), one = s.constant(1);
  Value sigmoid = sigmoidOf(s, x);
  Value slope = s.add(one, s.mul(x, s.sub(one, sigmoid)));
  return s.mul(s.mul(s.arg(args.gradOutput), sigmoid), slope);
}

Value torch_ltc::emitMish(ElementwiseBody &s, MishArguments args) {
  Value x = s.arg(args.self);
  return s.mul(x, s.unary<math::TanhOp>(log1pExp(s, x)));
}

Value torch_ltc::emitMishBackward(ElementwiseBody &s,
                                  MishBackwardArguments args) {
  Value x = s.arg(args.self);
  Value tanh = s.unary<math::TanhOp>(log1pExp(s, x));
  Value inner =
      s.mul(s.mul(x, sigmoidOf(s, x)), s.sub(s.constant(1), s.square(tanh)));
  return s.mul(s.arg(args.gradOutput), s.add(tanh, inner));
}

namespace {
/// sqrt(2 / pi) and the cubic coefficient of GELU's tanh approximation.
constexpr double geluBeta = std::numbers::sqrt2 * std::numbers::inv_sqrtpi;
constexpr double geluKappa = 0.044715;
} // namespace

static Value geluInner(ElementwiseBody &s, Value x) {
  Value cube = s.mul(s.square(x), x);
  return s.mul(s.constant(geluBeta),
               s.add(x, s.mul(s.constant(geluKappa), cube)));
}

/// Twice the cumulative normal distribution.
static Value twiceNormalCdf(ElementwiseBody &s, Value x) {
  Value erf =
      s.unary<math::ErfOp>(s.mul(x, s.constant(std::numbers::sqrt2 / 2)));
  return s.add(s.constant(1), erf);
}

static Value normalCdf(ElementwiseBody &s, Value x) {
  return s.mul(s.constant(0.5), twiceNormalCdf(s, x));
}

Value torch_ltc::emitGelu(ElementwiseBody &s, GeluArguments args) {
  Value x = s.arg(args.self);
  if (s.op.string(args.approximate.operand) != "tanh") {
    // Eager's kernels overflow where 2 * x does, except for float64. Those for
    // float32 and bfloat16 return NaN at infinities.
    Value twice = twiceNormalCdf(s, x), half = s.constant(0.5);
    if (!s.dtype.isF32())
      return s.mul(s.mul(x, half), twice);
    if (!s.op.dtype(args.self.operand).isF16())
      twice = s.add(twice, s.sub(x, x));
    return s.mul(s.mul(x, twice), half);
  }
  Value tanh = s.unary<math::TanhOp>(geluInner(s, x));
  return s.mul(s.mul(s.constant(0.5), x), s.add(s.constant(1), tanh));
}

Value torch_ltc::emitGeluBackward(ElementwiseBody &s,
                                  GeluBackwardArguments args) {
  Value gradient = s.arg(args.gradOutput), x = s.arg(args.self),
        one = s.constant(1);
  Value half = s.constant(0.5);
  if (s.op.string(args.approximate.operand) != "tanh") {
    Value density =
        s.mul(s.exp(s.mul(s.constant(-0.5), s.square(x))),
              s.constant(std::numbers::inv_sqrtpi / std::numbers::sqrt2));
    return s.mul(gradient, s.add(normalCdf(s, x), s.mul(x, density)));
  }
  Value tanh = s.unary<math::TanhOp>(geluInner(s, x));
  Value innerSlope =
      s.mul(s.constant(geluBeta),
            s.add(one, s.mul(s.constant(3 * geluKappa), s.square(x))));
  Value left = s.mul(half, s.add(one, tanh));
  Value right =
      s.mul(s.mul(s.mul(half, x), s.sub(one, s.square(tanh))), innerSlope);
  return s.mul(gradient, s.add(left, right));
}
