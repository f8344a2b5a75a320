//===- DecomposeNormalization.cpp - Layer, group and RMS norm -------------===//
//
// Formulas: aten/src/ATen/native/cpu/layer_norm_kernel.cpp,
// cpu/group_norm_kernel.cpp and layer_norm.cpp (RMS norm).
//
// torch's backward kernels compute the input's gradient as a*dy + b*x + c. The
// equivalent formula here is
//
//   dx = rstd * (g - mean(g) - xhat * mean(g * xhat))
//   xhat = (x - mean) * rstd,  g = dy * weight
//
// This formula doesn't subtract large numbers from each other if |mean| is
// large.
//
//===----------------------------------------------------------------------===//

#include "FormulaBuilder.h"

#include "torch_ltc/Dialect/Torch/TorchOps_normalization.h"

#include <limits>

using namespace mlir;
using namespace mlir::torch_ltc;
using namespace mlir::torch_ltc::torch;

static SmallVector<int64_t> range(int64_t begin, int64_t end) {
  return llvm::to_vector(llvm::seq<int64_t>(begin, end));
}

namespace {
// x - mean, the mean, and 1 / sqrt(variance + eps) over some dimensions, which
// are kept with size 1.
struct Standardized {
  Value centered, mean, rstd;
};
} // namespace

static Standardized standardize(FormulaBuilder &b, Value x,
                                ArrayRef<int64_t> dims, Number eps) {
  Value mean = b.mean(x, dims, /*keepDim=*/true);
  Value centered = b.sub(x, mean);
  Value variance = b.mean(b.square(centered), dims, /*keepDim=*/true);
  return {centered, mean, b.rsqrt(b.add(variance, eps))};
}

// Returns dx of the formula at the top of this file, with means over `dims`.
static Value standardizeBackward(FormulaBuilder &b, Value g, Value xhat,
                                 Value rstd, ArrayRef<int64_t> dims) {
  Value mean = b.mean(g, dims, /*keepDim=*/true);
  Value slope = b.mean(b.mul(g, xhat), dims, /*keepDim=*/true);
  return b.mul(rstd, b.sub(b.sub(g, mean), b.mul(xhat, slope)));
}

//===----------------------------------------------------------------------===//
// Layer norm
//===----------------------------------------------------------------------===//

static LogicalResult decomposeLayerNorm(AtenNativeLayerNormOp op,
                                        FormulaBuilder &b) {
  Value x = b.compute(op.getInput());
  int64_t outer = b.rank(x) - b.integers(op.getNormalizedShape()).size();
  Standardized s =
      standardize(b, x, range(outer, b.rank(x)), b.number(op.getEps()));
  Value y = b.mul(s.centered, s.rstd);
  if (!b.isNone(op.getWeight()))
    y = b.mul(y, b.compute(op.getWeight()));
  if (!b.isNone(op.getBias()))
    y = b.add(y, b.compute(op.getBias()));
  return b.replaceWith({y, s.mean, s.rstd});
}

static LogicalResult
decomposeLayerNormBackward(AtenNativeLayerNormBackwardOp op,
                           FormulaBuilder &b) {
  Value grad = b.compute(op.getGradOut()), x = b.compute(op.getInput());
  Value rstd = b.compute(op.getRstd());
  int64_t outer = b.rank(x) - b.integers(op.getNormalizedShape()).size();
  SmallVector<int64_t> outerDims = range(0, outer);
  Value xhat = b.mul(b.sub(x, b.compute(op.getMean())), rstd);

  SmallVector<bool> mask = b.booleans(op.getOutputMask());
  Value gradInput, gradWeight, gradBias;
  if (mask[0] && b.isUsed(0)) {
    Value g = grad;
    if (!b.isNone(op.getWeight()))
      g = b.mul(grad, b.compute(op.getWeight()));
    gradInput = standardizeBackward(b, g, xhat, rstd, range(outer, b.rank(x)));
  }
  if (mask[1] && b.isUsed(1))
    gradWeight = b.sum(b.mul(grad, xhat), outerDims, /*keepDim=*/false);
  if (mask[2] && b.isUsed(2))
    gradBias = b.sum(grad, outerDims, /*keepDim=*/false);
  return b.replaceWith({gradInput, gradWeight, gradBias});
}

//===----------------------------------------------------------------------===//
// Group norm: [N, C, *] is viewed as [N, groups, C / groups, elements]
//===----------------------------------------------------------------------===//

static Value perChannel(FormulaBuilder &b, Value parameter, int64_t groups) {
  int64_t channels = b.numElements(parameter);
  return b.view(b.compute(parameter), {1, groups, channels / groups, 1});
}

static LogicalResult decomposeGroupNorm(AtenNativeGroupNormOp op,
                                        FormulaBuilder &b) {
  int64_t batch = b.integer(op.getN()), channels = b.integer(op.getC());
  int64_t groups = b.integer(op.getGroup());
  Value x = b.view(b.compute(op.getInput()),
                   {batch, groups, channels / groups, b.integer(op.getHxW())});
  Standardized s = standardize(b, x, {2, 3}, b.number(op.getEps()));
  Value y = b.mul(s.centered, s.rstd);
  if (!b.isNone(op.getWeight()))
    y = b.mul(y, perChannel(b, op.getWeight(), groups));
  if (!b.isNone(op.getBias()))
    y = b.add(y, perChannel(b, op.getBias(), groups));
  return b.replaceWith({y, s.mean, s.rstd});
}

static LogicalResult
decomposeGroupNormBackward(AtenNativeGroupNormBackwardOp op,
                           FormulaBuilder &b) {
  int64_t batch = b.integer(op.getN()), channels = b.integer(op.getC());
  int64_t groups = b.integer(op.getGroup());
  SmallVector<int64_t> sizes{batch, groups, channels / groups,
                             b.integer(op.getHxW())};
  Value grad = b.view(b.compute(op.getGradOut()), sizes);
  Value x = b.view(b.compute(op.getInput()), sizes);
  Value mean = b.view(b.compute(op.getMean()), {batch, groups, 1, 1});
  Value rstd = b.view(b.compute(op.getRstd()), {batch, groups, 1, 1});
  Value xhat = b.mul(b.sub(x, mean), rstd);

  SmallVector<bool> mask = b.booleans(op.getOutputMask());
  Value gradInput, gradWeight, gradBias;
  if (mask[0] && b.isUsed(0)) {
    Value g = grad;
    if (!b.isNone(op.getWeight()))
      g = b.mul(grad, perChannel(b, op.getWeight(), groups));
    gradInput = standardizeBackward(b, g, xhat, rstd, {2, 3});
  }
  if (mask[1] && b.isUsed(1))
    gradWeight = b.sum(b.mul(grad, xhat), {0, 3}, /*keepDim=*/false);
  if (mask[2] && b.isUsed(2))
    gradBias = b.sum(grad, {0, 3}, /*keepDim=*/false);
  return b.replaceWith({gradInput, gradWeight, gradBias});
}

//===----------------------------------------------------------------------===//
// RMS norm: x * rsqrt(mean(x^2) + eps) * weight
//===----------------------------------------------------------------------===//

// The number `eps`, or, if `eps` is none, the machine epsilon of the compute
// dtype, as in torch.
static Number rmsNormEps(FormulaBuilder &b, Value eps, Value x) {
  if (!b.isNone(eps))
    return b.number(eps);
  return b.dtype(x).isF64() ? std::numeric_limits<double>::epsilon()
                            : double(std::numeric_limits<float>::epsilon());
}

static LogicalResult decomposeRmsNorm(Aten_FusedRmsNormOp op,
                                      FormulaBuilder &b) {
  Value x = b.compute(op.getInput());
  int64_t outer = b.rank(x) - b.integers(op.getNormalizedShape()).size();
  Value squares = b.mean(b.square(x), range(outer, b.rank(x)),
                         /*keepDim=*/true);
  Value rstd = b.rsqrt(b.add(squares, rmsNormEps(b, op.getEps(), x)));
  Value y = b.mul(x, rstd);
  if (!b.isNone(op.getWeight()))
    y = b.mul(y, b.compute(op.getWeight()));
  return b.replaceWith({y, rstd});
}

// dx = rstd * (g - xhat * mean(g * xhat))
static LogicalResult decomposeRmsNormBackward(Aten_FusedRmsNormBackwardOp op,
                                              FormulaBuilder &b) {
  Value grad = b.compute(op.getGradOut()), x = b.compute(op.getInput());
  Value rstd = b.compute(op.getRstd());
  int64_t outer = b.rank(x) - b.integers(op.getNormalizedShape()).size();
  SmallVector<int64_t> dims = range(outer, b.rank(x));
  Value xhat = b.mul(x, rstd);

  SmallVector<bool> mask = b.booleans(op.getOutputMask());
  Value gradInput, gradWeight;
  if (mask[0] && b.isUsed(0)) {
    Value g = grad;
    if (!b.isNone(op.getWeight()))
      g = b.mul(grad, b.compute(op.getWeight()));
    Value slope = b.mean(b.mul(g, xhat), dims, /*keepDim=*/true);
    gradInput = b.mul(rstd, b.sub(g, b.mul(xhat, slope)));
  }
  if (mask[1] && b.isUsed(1))
    gradWeight = b.sum(b.mul(grad, xhat), range(0, outer), /*keepDim=*/false);
  return b.replaceWith({gradInput, gradWeight});
}

void mlir::torch_ltc::populateNormalizationDecompositionPatterns(
    RewritePatternSet &patterns, const DecompositionOptions &options) {
  DecompositionAdder adder(patterns, options);
  adder.add(decomposeLayerNorm);
  adder.add(decomposeLayerNormBackward);
  adder.add(decomposeGroupNorm);
  adder.add(decomposeGroupNormBackward);
  adder.add(decomposeRmsNorm);
  adder.add(decomposeRmsNormBackward);
}
