//===- DecomposeSoftmax.cpp - Softmax and its relatives -------------------===//
//
// Formulas: aten/src/ATen/native/cpu/SoftMaxKernel.cpp and SoftMax.cpp.
//
//===----------------------------------------------------------------------===//

#include "FormulaBuilder.h"

#include "torch_ltc/Dialect/Torch/TorchOps_reduction.h"

#include <limits>

using namespace mlir;
using namespace mlir::torch_ltc;
using namespace mlir::torch_ltc::torch;

// Reshapes a rank-0 tensor to [1]: torch treats it as a row of one element.
static Value asRankOne(FormulaBuilder &b, Value x) {
  return b.rank(x) == 0 ? b.view(x, {1}) : x;
}

// exp(x - max) / sum(exp(x - max)); the maximum keeps exp finite.
static Value softmax(FormulaBuilder &b, Value x, Value max, int64_t dim) {
  Value e = b.exp(b.sub(x, max));
  return b.div(e, b.sum(e, {dim}, /*keepDim=*/true));
}

static LogicalResult decomposeSoftmax(Aten_SoftmaxOp op, FormulaBuilder &b) {
  Value x = asRankOne(b, b.compute(op.getSelf(), b.resultDtype()));
  int64_t dim = b.dimension(op.getDim(), b.rank(x));
  Value max = b.amax(x, {dim}, /*keepDim=*/true);
  return b.replaceWith({softmax(b, x, max, dim)});
}

// Attention's softmax, which is 0 instead of NaN for a row of only -inf (a
// completely masked row). The maximum of such a row is -inf.
static LogicalResult decomposeSafeSoftmax(Aten_SafeSoftmaxOp op,
                                          FormulaBuilder &b) {
  Value x = asRankOne(b, b.compute(op.getSelf(), b.resultDtype()));
  int64_t dim = b.dimension(op.getDim(), b.rank(x));
  Value max = b.amax(x, {dim}, /*keepDim=*/true);
  Value isMasked = b.eq(max, -std::numeric_limits<double>::infinity());
  return b.replaceWith({b.maskedFill(softmax(b, x, max, dim), isMasked, 0.0)});
}

// (x - max) - log(sum(exp(x - max))). The two subtractions aren't combined: max
// + log(sum) would lose the small differences between large elements.
static LogicalResult decomposeLogSoftmax(Aten_LogSoftmaxOp op,
                                         FormulaBuilder &b) {
  Value x = asRankOne(b, b.compute(op.getSelf(), b.resultDtype()));
  int64_t dim = b.dimension(op.getDim(), b.rank(x));
  Value shifted = b.sub(x, b.amax(x, {dim}, /*keepDim=*/true));
  Value sum = b.sum(b.exp(shifted), {dim}, /*keepDim=*/true);
  return b.replaceWith({b.sub(shifted, b.log(sum))});
}

// (grad - sum(grad * output)) * output
static LogicalResult decomposeSoftmaxBackward(Aten_SoftmaxBackwardDataOp op,
                                              FormulaBuilder &b) {
  Value grad = asRankOne(b, b.compute(op.getGradOutput()));
  Value output = asRankOne(b, b.compute(op.getOutput()));
  int64_t dim = b.dimension(op.getDim(), b.rank(grad));
  Value sum = b.sum(b.mul(grad, output), {dim}, /*keepDim=*/true);
  return b.replaceWith({b.mul(b.sub(grad, sum), output)});
}

// grad - exp(output) * sum(grad)
static LogicalResult
decomposeLogSoftmaxBackward(Aten_LogSoftmaxBackwardDataOp op,
                            FormulaBuilder &b) {
  Value grad = asRankOne(b, b.compute(op.getGradOutput()));
  Value output = asRankOne(b, b.compute(op.getOutput()));
  int64_t dim = b.dimension(op.getDim(), b.rank(grad));
  Value sum = b.sum(grad, {dim}, /*keepDim=*/true);
  return b.replaceWith({b.sub(grad, b.mul(b.exp(output), sum))});
}

// log(sum(exp(x - max))) + max, where 0 replaces an infinite maximum, so that
// the result for infinities is infinite instead of NaN.
static LogicalResult decomposeLogsumexp(AtenLogsumexpOp op, FormulaBuilder &b) {
  Value x = b.compute(op.getSelf(), b.resultDtype());
  SmallVector<int64_t> dims = b.dimensions(op.getDim(), b.rank(x));
  if (b.numElements(x) == 0)
    return b.replaceWith({b.log(b.sum(b.exp(x), dims, /*keepDim=*/true))});
  Value max = b.amax(x, dims, /*keepDim=*/true);
  Value isInfinite = b.eq(b.abs(max), std::numeric_limits<double>::infinity());
  max = b.maskedFill(max, isInfinite, 0.0);
  Value sum = b.sum(b.exp(b.sub(x, max)), dims, /*keepDim=*/true);
  return b.replaceWith({b.add(b.log(sum), max)});
}

void mlir::torch_ltc::populateSoftmaxDecompositionPatterns(
    RewritePatternSet &patterns, const DecompositionOptions &options) {
  DecompositionAdder adder(patterns, options);
  adder.add(decomposeSoftmax);
  adder.add(decomposeSafeSoftmax);
  adder.add(decomposeLogSoftmax);
  adder.add(decomposeSoftmaxBackward);
  adder.add(decomposeLogSoftmaxBackward);
  adder.add(decomposeLogsumexp);
}
