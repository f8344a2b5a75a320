//===- DecomposeLoss.cpp - Losses of two tensors --------------------------===//
//
// Formulas: aten/src/ATen/native/Loss.cpp, cpu/BinaryOpsKernel.cpp and
// cpu/PointwiseOpsKernel.cpp. The negative log likelihood is in
// DecomposeNllLoss.cpp.
//
//===----------------------------------------------------------------------===//

#include "FormulaBuilder.h"
#include "LossReduction.h"

#include "torch_ltc/Dialect/Torch/TorchOps_loss.h"

using namespace mlir;
using namespace mlir::torch_ltc;
using namespace mlir::torch_ltc::torch;

static Value reduceLoss(FormulaBuilder &b, Value loss, int64_t reduction) {
  SmallVector<int64_t> dims =
      llvm::to_vector(llvm::seq<int64_t>(0, b.rank(loss)));
  if (reduction == None)
    return loss;
  return reduction == Mean ? b.mean(loss, dims, /*keepDim=*/false)
                           : b.sum(loss, dims, /*keepDim=*/false);
}

// Returns the factor by which the reduction multiplies each element's gradient:
// 1 / n for a mean, otherwise 1.
static double gradientFactor(FormulaBuilder &b, Value input,
                             int64_t reduction) {
  return reduction == Mean ? 1.0 / b.numElements(input) : 1.0;
}

namespace {
// The operands of most losses.
struct Pair {
  Value input, target;
  int64_t reduction;
};
} // namespace

template <typename OpTy> static Pair readPair(OpTy op, FormulaBuilder &b) {
  Type dtype = b.computeDtype(b.resultDtype());
  return {b.cast(op.getSelf(), dtype), b.cast(op.getTarget(), dtype),
          b.integer(op.getReduction())};
}

//===----------------------------------------------------------------------===//
// Mean squared error
//===----------------------------------------------------------------------===//

static LogicalResult decomposeMse(AtenMseLossOp op, FormulaBuilder &b) {
  Pair p = readPair(op, b);
  Value loss = b.square(b.sub(p.input, p.target));
  return b.replaceWith({reduceLoss(b, loss, p.reduction)});
}

// 2 / n * (input - target) * grad
static LogicalResult decomposeMseBackward(AtenMseLossBackwardOp op,
                                          FormulaBuilder &b) {
  Pair p = readPair(op, b);
  double factor = 2 * gradientFactor(b, p.input, p.reduction);
  Value slope = b.mul(b.sub(p.input, p.target), factor);
  return b.replaceWith({b.mul(slope, b.compute(op.getGradOutput()))});
}

//===----------------------------------------------------------------------===//
// Smooth L1 and Huber: quadratic near 0, linear elsewhere
//===----------------------------------------------------------------------===//

// z = |input - target|; z < beta ? z^2 / 2 / beta : z - beta / 2
static LogicalResult decomposeSmoothL1(AtenSmoothL1LossOp op,
                                       FormulaBuilder &b) {
  Pair p = readPair(op, b);
  Number beta = b.number(op.getBeta());
  Value z = b.abs(b.sub(p.input, p.target));
  Value quadratic = b.div(b.mul(b.mul(z, 0.5), z), beta);
  Value linear = b.sub(z, b.mul(beta, Number(0.5)));
  Value loss = b.where(b.lt(z, beta), quadratic, linear);
  return b.replaceWith({reduceLoss(b, loss, p.reduction)});
}

// sign(x) * outer if |x| >= limit, otherwise `inner`
static Value linearOutside(FormulaBuilder &b, Value x, Number limit,
                           Value outer, Value inner) {
  Value below = b.le(x, b.mul(limit, Number(-1.0)));
  Value above = b.where(b.ge(x, limit), outer, inner);
  return b.where(below, b.neg(outer), above);
}

// |x| >= beta ? sign(x) * grad / n : x / beta * grad / n
static LogicalResult decomposeSmoothL1Backward(AtenSmoothL1LossBackwardOp op,
                                               FormulaBuilder &b) {
  Pair p = readPair(op, b);
  Number beta = b.number(op.getBeta());
  Value x = b.sub(p.input, p.target);
  Value outer = b.mul(b.compute(op.getGradOutput()),
                      gradientFactor(b, p.input, p.reduction));
  Value inner = b.div(b.mul(x, outer), beta);
  return b.replaceWith({linearOutside(b, x, beta, outer, inner)});
}

// z = |input - target|; z <= delta ? z^2 / 2 : delta * (z - delta / 2)
static LogicalResult decomposeHuber(AtenHuberLossOp op, FormulaBuilder &b) {
  Pair p = readPair(op, b);
  Number delta = b.number(op.getDelta());
  Value z = b.abs(b.sub(p.input, p.target));
  Value quadratic = b.mul(b.mul(z, 0.5), z);
  Value linear = b.mul(b.sub(z, b.mul(delta, Number(0.5))), delta);
  Value loss = b.where(b.le(z, delta), quadratic, linear);
  return b.replaceWith({reduceLoss(b, loss, p.reduction)});
}

// |x| >= delta ? sign(x) * delta * grad / n : x * grad / n
static LogicalResult decomposeHuberBackward(AtenHuberLossBackwardOp op,
                                            FormulaBuilder &b) {
  Pair p = readPair(op, b);
  Number delta = b.number(op.getDelta());
  Value x = b.sub(p.input, p.target);
  Value grad = b.mul(b.compute(op.getGradOutput()),
                     gradientFactor(b, p.input, p.reduction));
  Value inner = b.mul(x, grad);
  return b.replaceWith({linearOutside(b, x, delta, b.mul(grad, delta), inner)});
}

//===----------------------------------------------------------------------===//
// Binary cross entropy and soft margin
//===----------------------------------------------------------------------===//

static Value weighted(FormulaBuilder &b, Value x, Value weight) {
  return b.isNone(weight) ? x : b.mul(x, b.compute(weight));
}

static Value isProbability(FormulaBuilder &b, Value x) {
  return b.logicalAnd(b.ge(x, 0.0), b.le(x, 1.0));
}

// (t - 1) * max(log(1 - x), -100) - t * max(log(x), -100): torch bounds the
// logarithms so that x = 0 and x = 1 have finite losses, and rejects x and t
// outside [0, 1].
static LogicalResult decomposeBce(AtenBinaryCrossEntropyOp op,
                                  FormulaBuilder &b) {
  Pair p = readPair(op, b);
  Value logNot = b.clampMin(b.log1p(b.neg(p.input)), -100);
  Value logYes = b.clampMin(b.log(p.input), -100);
  Value loss =
      b.sub(b.mul(b.sub(p.target, 1.0), logNot), b.mul(p.target, logYes));
  loss = weighted(b, loss, op.getWeight());
  loss = reduceLoss(b, loss, p.reduction);
  if (b.numElements(p.input) > 0)
    loss = b.add(loss,
                 b.cast(b.zeroIfAll(b.logicalAnd(isProbability(b, p.input),
                                                 isProbability(b, p.target))),
                        b.dtype(loss)));
  return b.replaceWith({loss});
}

// weight * grad * (x - t) / max((1 - x) * x, 1e-12) / n. torch's bound is a
// float32, even for doubles.
static LogicalResult decomposeBceBackward(AtenBinaryCrossEntropyBackwardOp op,
                                          FormulaBuilder &b) {
  Pair p = readPair(op, b);
  Value slope = b.mul(b.compute(op.getGradOutput()), b.sub(p.input, p.target));
  constexpr double smallest = 1e-12f;
  Value variance =
      b.clampMin(b.mul(b.sub(Number(1.0), p.input), p.input), smallest);
  Value grad = weighted(b, b.div(slope, variance), op.getWeight());
  if (p.reduction == Mean)
    grad = b.div(grad, double(b.numElements(p.input)));
  return b.replaceWith({grad});
}

// (1 - t) * x - w * log_sigmoid(x), w = (pos_weight - 1) * t + 1
// log_sigmoid(x) = min(x, 0) - log1p(exp(-|x|))
static LogicalResult
decomposeBceWithLogits(AtenBinaryCrossEntropyWithLogitsOp op,
                       FormulaBuilder &b) {
  Pair p = readPair(op, b);
  Value logSigmoid =
      b.sub(b.clampMax(p.input, 0.0), b.log1p(b.exp(b.neg(b.abs(p.input)))));
  if (!b.isNone(op.getPosWeight())) {
    Value extra = b.sub(b.compute(op.getPosWeight()), 1.0);
    logSigmoid = b.mul(logSigmoid, b.add(b.mul(extra, p.target), 1.0));
  }
  Value loss = b.sub(b.mul(b.sub(Number(1.0), p.target), p.input), logSigmoid);
  loss = weighted(b, loss, op.getWeight());
  return b.replaceWith({reduceLoss(b, loss, p.reduction)});
}

// log1p(exp(-target * input))
static LogicalResult decomposeSoftMargin(AtenSoftMarginLossOp op,
                                         FormulaBuilder &b) {
  Pair p = readPair(op, b);
  Value loss = b.log1p(b.exp(b.mul(b.neg(p.target), p.input)));
  return b.replaceWith({reduceLoss(b, loss, p.reduction)});
}

// z = exp(-target * input): -target * z / (z + 1) * grad / n
static LogicalResult
decomposeSoftMarginBackward(AtenSoftMarginLossBackwardOp op,
                            FormulaBuilder &b) {
  Pair p = readPair(op, b);
  Value z = b.exp(b.mul(b.neg(p.target), p.input));
  Value slope =
      b.mul(b.mul(p.target, z), -gradientFactor(b, p.input, p.reduction));
  slope = b.div(slope, b.add(z, 1.0));
  return b.replaceWith({b.mul(slope, b.compute(op.getGradOutput()))});
}

void mlir::torch_ltc::populateLossDecompositionPatterns(
    RewritePatternSet &patterns, const DecompositionOptions &options) {
  DecompositionAdder adder(patterns, options);
  adder.add(decomposeMse);
  adder.add(decomposeMseBackward);
  adder.add(decomposeSmoothL1);
  adder.add(decomposeSmoothL1Backward);
  adder.add(decomposeHuber);
  adder.add(decomposeHuberBackward);
  adder.add(decomposeBce);
  adder.add(decomposeBceBackward);
  adder.add(decomposeBceWithLogits);
  adder.add(decomposeSoftMargin);
  adder.add(decomposeSoftMarginBackward);
}
