//===- DecomposeBatchNorm.cpp - Batch norm and its gradient ---------------===//
//
// Formulas: aten/src/ATen/native/Normalization.cpp and
// cpu/batch_norm_kernel.cpp. Channels are dimension 1; a tensor [C] has one
// element for each channel.
//
//===----------------------------------------------------------------------===//

#include "FormulaBuilder.h"

#include "torch_ltc/Dialect/Torch/TorchOps_normalization.h"

using namespace mlir;
using namespace mlir::torch_ltc;
using namespace mlir::torch_ltc::torch;

// Returns all dimensions except that of the channels.
static SmallVector<int64_t> reducedDims(FormulaBuilder &b, Value x) {
  SmallVector<int64_t> dims;
  for (int64_t dim = 0; dim < b.rank(x); ++dim)
    if (dim != 1)
      dims.push_back(dim);
  return dims;
}

// Reshapes [C] to [1, C, 1, ...], which broadcasts against x.
static Value perChannel(FormulaBuilder &b, Value channels, Value x) {
  SmallVector<int64_t> sizes(b.rank(x), 1);
  sizes[1] = b.numElements(channels);
  return b.view(channels, sizes);
}

//===----------------------------------------------------------------------===//
// Forward
//===----------------------------------------------------------------------===//

namespace {
struct Statistics {
  Value mean, invstd; // [C], in the compute dtype
  // sum((x - mean)^2); null if the statistics aren't those of the batch.
  Value squares;
};

struct BatchNormOperands {
  Value input, weight, bias, runningMean, runningVar; // null if not given
  bool training;
  Number momentum, eps;
};
} // namespace

template <typename OpTy>
static BatchNormOperands readOperands(OpTy op, FormulaBuilder &b) {
  auto optional = [&](Value value) {
    return b.isNone(value) ? Value() : b.compute(value);
  };
  return {b.compute(op.getInput()), optional(op.getWeight()),
          optional(op.getBias()),
          /*runningMean=*/Value(),
          /*runningVar=*/Value(),
          /*training=*/true,        b.number(op.getMomentum()),
          b.number(op.getEps())};
}

static Statistics batchStatistics(FormulaBuilder &b, Value x, Number eps) {
  SmallVector<int64_t> dims = reducedDims(b, x);
  double count = b.count(x, dims);
  Value mean = b.mean(x, dims, /*keepDim=*/false);
  Value centered = b.sub(x, perChannel(b, mean, x));
  Value squares = b.sum(b.square(centered), dims, /*keepDim=*/false);
  Value invstd = b.rsqrt(b.add(b.div(squares, count), eps));
  return {mean, invstd, squares};
}

// x * alpha + beta with alpha = invstd * weight, beta = bias - mean * alpha,
// like batch_norm_cpu_collect_linear_and_constant_terms.
static Value normalize(FormulaBuilder &b, const BatchNormOperands &operands,
                       const Statistics &statistics) {
  Value alpha = statistics.invstd;
  if (operands.weight)
    alpha = b.mul(alpha, operands.weight);
  Value shift = b.mul(statistics.mean, alpha);
  Value beta = operands.bias ? b.sub(operands.bias, shift) : b.neg(shift);
  Value x = operands.input;
  return b.add(b.mul(x, perChannel(b, alpha, x)), perChannel(b, beta, x));
}

// momentum * statistic + (1 - momentum) * running
static Value updateRunning(FormulaBuilder &b, Value statistic, Value running,
                           Number momentum) {
  return b.add(b.mul(statistic, momentum),
               b.mul(running, b.sub(Number(1.0), momentum)));
}

namespace {
struct BatchNormResults {
  Value output, saveMean, saveInvstd, runningMean, runningVar;
};
} // namespace

// Computes all results. In evaluation, the saved statistics have size 0, as in
// PyTorch's CPU kernels, and the running statistics are unchanged.
static BatchNormResults batchNorm(FormulaBuilder &b,
                                  const BatchNormOperands &operands) {
  BatchNormResults results;
  Value x = operands.input;
  if (!operands.training) {
    Value invstd = b.rsqrt(b.add(operands.runningVar, operands.eps));
    results.output = normalize(b, operands, {operands.runningMean, invstd, {}});
    results.saveMean = b.zeros({0}, b.resultDtype(1));
    results.saveInvstd = b.zeros({0}, b.resultDtype(2));
    results.runningMean = operands.runningMean;
    results.runningVar = operands.runningVar;
    return results;
  }
  Statistics statistics = batchStatistics(b, x, operands.eps);
  results.output = normalize(b, operands, statistics);
  results.saveMean = statistics.mean;
  results.saveInvstd = statistics.invstd;
  if (!operands.runningMean)
    return results;
  // The running variance is unbiased: its divisor is n - 1.
  double count = b.count(x, reducedDims(b, x));
  Value unbiased = b.div(statistics.squares, count - 1);
  results.runningMean = updateRunning(b, statistics.mean, operands.runningMean,
                                      operands.momentum);
  results.runningVar =
      updateRunning(b, unbiased, operands.runningVar, operands.momentum);
  return results;
}

// Decomposes ops with three results, which don't include running statistics.
template <typename OpTy>
static LogicalResult decomposeThreeResults(OpTy op, FormulaBuilder &b,
                                           Value runningMean, Value runningVar,
                                           bool training) {
  BatchNormOperands operands = readOperands(op, b);
  operands.training = training;
  if (!training && (b.isNone(runningMean) || b.isNone(runningVar)))
    return b.fail("it has neither a batch nor running statistics to use");
  if (!training) {
    operands.runningMean = b.compute(runningMean);
    operands.runningVar = b.compute(runningVar);
  }
  BatchNormResults results = batchNorm(b, operands);
  return b.replaceWith({results.output, results.saveMean, results.saveInvstd});
}

static LogicalResult decomposeBatchNorm(AtenNativeBatchNormOp op,
                                        FormulaBuilder &b) {
  return decomposeThreeResults(op, b, op.getRunningMean(), op.getRunningVar(),
                               b.boolean(op.getTraining()));
}

static LogicalResult decomposeLegit(Aten_NativeBatchNormLegitOp op,
                                    FormulaBuilder &b) {
  return decomposeThreeResults(op, b, op.getRunningMean(), op.getRunningVar(),
                               b.boolean(op.getTraining()));
}

static LogicalResult decomposeNoStats(Aten_NativeBatchNormLegitNoStatsOp op,
                                      FormulaBuilder &b) {
  if (!b.boolean(op.getTraining()))
    return b.fail("it has neither a batch nor running statistics to use");
  return decomposeThreeResults(op, b, {}, {}, /*training=*/true);
}

static LogicalResult
decomposeNoTraining(Aten_NativeBatchNormLegitNoTrainingOp op,
                    FormulaBuilder &b) {
  return decomposeThreeResults(op, b, op.getRunningMean(), op.getRunningVar(),
                               /*training=*/false);
}

static LogicalResult
decomposeFunctional(Aten_NativeBatchNormLegitFunctionalOp op,
                    FormulaBuilder &b) {
  BatchNormOperands operands = readOperands(op, b);
  operands.training = b.boolean(op.getTraining());
  operands.runningMean = b.compute(op.getRunningMean());
  operands.runningVar = b.compute(op.getRunningVar());
  BatchNormResults results = batchNorm(b, operands);
  return b.replaceWith({results.output, results.saveMean, results.saveInvstd,
                        results.runningMean, results.runningVar});
}

//===----------------------------------------------------------------------===//
// Backward
//===----------------------------------------------------------------------===//

// With d = x - mean, sum = sum(dy), dot = sum(dy * d), n elements in each
// channel:
//   training    dx = (dy - sum/n - d * (dot * invstd^2 / n)) * invstd * weight
//   evaluation  dx = dy * invstd * weight
//   dweight = dot * invstd, dbias = sum
static LogicalResult
decomposeBatchNormBackward(AtenNativeBatchNormBackwardOp op,
                           FormulaBuilder &b) {
  bool train = b.boolean(op.getTrain());
  Value meanOperand = train ? op.getSaveMean() : op.getRunningMean();
  Value scaleOperand = train ? op.getSaveInvstd() : op.getRunningVar();
  if (b.isNone(meanOperand) || b.isNone(scaleOperand))
    return b.fail("the statistics that it needs are missing");

  Value grad = b.compute(op.getGradOut()), x = b.compute(op.getInput());
  SmallVector<int64_t> dims = reducedDims(b, x);
  double count = b.count(x, dims);
  Value invstd = b.compute(scaleOperand);
  if (!train)
    invstd = b.rsqrt(b.add(invstd, b.number(op.getEps())));
  Value centered = b.sub(x, perChannel(b, b.compute(meanOperand), x));
  Value sum = b.sum(grad, dims, /*keepDim=*/false);
  Value dot = b.sum(b.mul(grad, centered), dims, /*keepDim=*/false);

  SmallVector<bool> mask = b.booleans(op.getOutputMask());
  Value gradInput, gradWeight, gradBias;
  if (mask[0] && b.isUsed(0)) {
    Value scale = invstd;
    if (!b.isNone(op.getWeight()))
      scale = b.mul(scale, b.compute(op.getWeight()));
    gradInput = grad;
    if (train) {
      Value slope = b.div(b.mul(dot, b.square(invstd)), count);
      gradInput = b.sub(grad, perChannel(b, b.div(sum, count), x));
      gradInput = b.sub(gradInput, b.mul(centered, perChannel(b, slope, x)));
    }
    gradInput = b.mul(gradInput, perChannel(b, scale, x));
  }
  if (mask[1] && b.isUsed(1))
    gradWeight = b.mul(dot, invstd);
  if (mask[2] && b.isUsed(2))
    gradBias = sum;
  return b.replaceWith({gradInput, gradWeight, gradBias});
}

void mlir::torch_ltc::populateBatchNormDecompositionPatterns(
    RewritePatternSet &patterns, const DecompositionOptions &options) {
  DecompositionAdder adder(patterns, options);
  adder.add(decomposeBatchNorm);
  adder.add(decomposeLegit);
  adder.add(decomposeNoStats);
  adder.add(decomposeNoTraining);
  adder.add(decomposeFunctional);
  adder.add(decomposeBatchNormBackward);
}
