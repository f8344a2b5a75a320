//===- DecomposeAttention.cpp - Decomposition of attention ----------------===//

#include "FormulaBuilder.h"

#include "torch_ltc/Dialect/Torch/TorchOps_linear.h"

#include <limits>

using namespace mlir;
using namespace mlir::torch_ltc;
using namespace mlir::torch_ltc::torch;

static constexpr double infinity = std::numeric_limits<double>::infinity();

// Reshapes [batch, heads, rows, columns] to a batch of matrices.
static Value asMatrices(FormulaBuilder &b, Value x) {
  ArrayRef<int64_t> sizes = b.sizes(x);
  return b.view(x, {sizes[0] * sizes[1], sizes[2], sizes[3]});
}

// left * right, or left * right^T if `transposed`.
static Value multiply(FormulaBuilder &b, Value left, Value right,
                      bool transposed = false) {
  SmallVector<int64_t> sizes(b.sizes(left));
  Value factor = asMatrices(b, right);
  if (transposed)
    factor = b.permute(factor, {0, 2, 1});
  sizes.back() = b.sizes(factor)[2];
  return b.view(b.bmm(asMatrices(b, left), factor), sizes);
}

// query * key^T + mask. A mask of bools isn't added: the scores that it
// excludes become -inf. `isCausal` makes the scores of later keys -inf. If
// `isAddend`, the causal mask is added, as in PyTorch's decomposition, because
// comparing positions for each score takes a tenth of a training step.
static Value scoresOf(FormulaBuilder &b, Value query, Value key, Value mask,
                      bool isCausal, bool isAddend = false) {
  Value scores = multiply(b, query, key, /*transposed=*/true);
  if (!b.isNone(mask))
    scores = FormulaBuilder::dtype(mask).isInteger(1)
                 ? b.maskedFill(scores, b.logicalNot(mask), -infinity)
                 : b.add(scores, mask);
  if (!isCausal)
    return scores;
  int64_t length = b.sizes(query)[2], keys = b.sizes(key)[2];
  if (isAddend) {
    Value later = b.full({length, keys}, -infinity, b.dtype(scores));
    return b.add(scores, b.triu(later, 1));
  }
  Value lead = b.sub(b.view(b.arange(keys), {1, keys}),
                     b.view(b.arange(length), {length, 1}));
  return b.maskedFill(scores, b.gt(lead, 0), -infinity);
}

namespace {
struct Softmax {
  Value max, sum, seesNone, weights;
};
} // namespace

// Softmax of each query's scores. A query that sees no key has weights of 0.
static Softmax softmaxOf(FormulaBuilder &b, Value scores) {
  Softmax result;
  result.max = b.amax(scores, {3}, /*keepDim=*/true);
  result.seesNone = b.eq(result.max, -infinity);
  Value powers = b.exp(b.sub(scores, result.max));
  result.sum = b.sum(powers, {3}, /*keepDim=*/true);
  result.weights =
      b.maskedFill(b.div(powers, result.sum), result.seesNone, 0.0);
  return result;
}

// log(sum(exp(scores))). It is infinite for a query that sees no key, so that
// the query's weights are 0 in the gradient, too.
static Value logSumOf(FormulaBuilder &b, const Softmax &s,
                      ArrayRef<int64_t> sizes) {
  Value logSum = b.maskedFill(b.add(b.log(s.sum), s.max), s.seesNone, infinity);
  return b.view(logSum, sizes);
}

static LogicalResult decomposeAttention(TorchLtcAttentionOp op,
                                        FormulaBuilder &b) {
  Softmax s = softmaxOf(b, scoresOf(b, op.getQuery(), op.getKey(), op.getMask(),
                                    b.boolean(op.getIsCausal())));
  Value output, logSum;
  if (b.isUsed(0))
    output = multiply(b, s.weights, op.getValue());
  if (b.isUsed(1))
    logSum = logSumOf(b, s, b.resultSizes(1));
  return b.replaceWith({output, logSum});
}

static LogicalResult decomposeAttentionBackward(TorchLtcAttentionBackwardOp op,
                                                FormulaBuilder &b) {
  Value grad = op.getGradOutput(), query = op.getQuery(), key = op.getKey();
  Value scores =
      scoresOf(b, query, key, op.getMask(), b.boolean(op.getIsCausal()));
  Value weights = b.exp(b.sub(scores, b.unsqueeze(op.getLogSum(), 3)));
  Value gradWeights = multiply(b, grad, op.getValue(), /*transposed=*/true);
  Value delta = b.sum(b.mul(grad, op.getOutput()), {3}, /*keepDim=*/true);
  Value gradScores = b.mul(weights, b.sub(gradWeights, delta));
  auto transpose = [&](Value x) { return b.permute(x, {0, 1, 3, 2}); };
  return b.replaceWith({multiply(b, gradScores, key),
                        multiply(b, transpose(gradScores), query),
                        multiply(b, transpose(weights), grad)});
}

namespace {
/// The scaled query and the softmax of its scores, for an op whose operand
/// `query` isn't scaled. The op and its gradient build the same ops, so that
/// CSE merges them within a program.
struct ScaledAttention {
  Value query;
  Softmax softmax;
};
} // namespace

template <typename Op>
static ScaledAttention scaledAttention(Op op, FormulaBuilder &b) {
  constexpr bool isTrained = !std::is_same_v<Op, TorchLtcShortAttentionOp>;
  Value query = b.mul(op.getQuery(), b.number(op.getScale()));
  return {query, softmaxOf(b, scoresOf(b, query, op.getKey(), op.getMask(),
                                       b.boolean(op.getIsCausal()),
                                       /*isAddend=*/isTrained))};
}

static LogicalResult decomposeShortAttention(TorchLtcShortAttentionOp op,
                                             FormulaBuilder &b) {
  Value weights = scaledAttention(op, b).softmax.weights;
  return b.replaceWith({multiply(b, weights, op.getValue())});
}

static LogicalResult decomposeTrainedAttention(TorchLtcTrainedAttentionOp op,
                                               FormulaBuilder &b) {
  Softmax s = scaledAttention(op, b).softmax;
  return b.replaceWith(
      {b.isUsed(0) ? multiply(b, s.weights, op.getValue()) : Value(),
       b.isUsed(1) ? logSumOf(b, s, b.resultSizes(1)) : Value()});
}

// Computes softmax's gradient from its weights, which are those of the forward
// op; only eager's kernel uses `log_sum`.
static LogicalResult
decomposeTrainedAttentionBackward(TorchLtcTrainedAttentionBackwardOp op,
                                  FormulaBuilder &b) {
  ScaledAttention forward = scaledAttention(op, b);
  Value grad = op.getGradOutput(), weights = forward.softmax.weights;
  Value gradWeights = multiply(b, grad, op.getValue(), /*transposed=*/true);
  Value sum = b.sum(b.mul(gradWeights, weights), {3}, /*keepDim=*/true);
  Value gradScores = b.mul(b.sub(gradWeights, sum), weights);
  auto transpose = [&](Value x) { return b.permute(x, {0, 1, 3, 2}); };
  Value gradQuery = multiply(b, gradScores, op.getKey());
  return b.replaceWith({b.mul(gradQuery, b.number(op.getScale())),
                        multiply(b, transpose(gradScores), forward.query),
                        multiply(b, transpose(weights), grad)});
}

void mlir::torch_ltc::populateAttentionDecompositionPatterns(
    RewritePatternSet &patterns, const DecompositionOptions &options) {
  DecompositionAdder adder(patterns, options);
  adder.add(decomposeAttention);
  adder.add(decomposeAttentionBackward);
  adder.add(decomposeShortAttention);
  adder.add(decomposeTrainedAttention);
  adder.add(decomposeTrainedAttentionBackward);
}
