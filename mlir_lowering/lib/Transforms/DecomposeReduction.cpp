//===- DecomposeReduction.cpp - Means, variances, norms -------------------===//
//
// Formulas: aten/src/ATen/native/ReduceOps.cpp and cpu/ReduceOpsKernel.cpp.
//
//===----------------------------------------------------------------------===//

#include "FormulaBuilder.h"

#include "torch_ltc/Dialect/Ltc/SizeOrder.h"
#include "torch_ltc/Dialect/Torch/TorchOps_reduction.h"

#include <cmath>
#include <limits>

using namespace mlir;
using namespace mlir::torch_ltc;
using namespace mlir::torch_ltc::torch;

static SmallVector<int64_t> allDims(FormulaBuilder &b, Value x) {
  return llvm::to_vector(llvm::seq<int64_t>(0, b.rank(x)));
}

//===----------------------------------------------------------------------===//
// Means
//===----------------------------------------------------------------------===//

static LogicalResult decomposeMean(AtenMeanOp op, FormulaBuilder &b) {
  Value x = b.compute(op.getSelf(), b.resultDtype());
  return b.replaceWith({b.mean(x, allDims(b, x), /*keepDim=*/false)});
}

static LogicalResult decomposeMeanDim(AtenMeanDimOp op, FormulaBuilder &b) {
  Value x = b.compute(op.getSelf(), b.resultDtype());
  SmallVector<int64_t> dims = b.dimensions(op.getDim(), b.rank(x));
  return b.replaceWith({b.mean(x, dims, b.boolean(op.getKeepdim()))});
}

//===----------------------------------------------------------------------===//
// Variances
//===----------------------------------------------------------------------===//

namespace {
struct Moments {
  Value variance, mean;
};
} // namespace

// sum((x - mean)^2), where `deviation` is x - m for a rounded mean m. The
// squares of `deviation` sum to sum((x - mean)^2) + sum(x - m)^2 / n. The
// second term is subtracted, because it is large if |mean| is much larger than
// the standard deviation. The result is clamped, because rounding could make it
// negative. If the second term overflows, the sum of squares, which is at least
// as large, has overflowed, too.
static Value sumOfSquares(FormulaBuilder &b, Value deviation,
                          ArrayRef<int64_t> dims, double count) {
  Value squares = b.sum(b.square(deviation), dims, /*keepDim=*/true);
  if (!count)
    return squares;
  Value rest = b.sum(deviation, dims, /*keepDim=*/true);
  Value excess = b.mul(rest, b.div(rest, count));
  Value isHuge = b.gt(excess, double(std::numeric_limits<float>::max()));
  return b.where(isHuge, squares, b.clampMin(b.sub(squares, excess), 0));
}

// The variance sum((x - mean)^2) / max(0, n - correction) and the mean; both
// keep the reduced dimensions. torch sums in float64, so sums of large numbers
// don't overflow. Here the terms are scaled by a power of two that depends on
// their number; a program for all sizes sums in float64. If `wide`, squares are
// float64: float32 can't represent the squares of all its values.
template <typename OpTy>
static Moments moments(OpTy op, FormulaBuilder &b, bool wide = false) {
  Value x = b.compute(op.getSelf());
  SmallVector<int64_t> dims = b.dimensions(op.getDim(), b.rank(x));
  double count = double(b.count(x, dims));
  Value mean;
  if (isForAllSizes(op)) {
    Type dtype = b.dtype(x), wider = Float64Type::get(op.getContext());
    Value sum = b.sum(b.cast(x, wider), dims, /*keepDim=*/true);
    mean = b.cast(b.div(sum, count), dtype);
  } else {
    double scale = std::ldexp(1, -std::ilogb(std::max(count, 1.0)) - 1);
    Value sum = b.sum(b.mul(x, scale), dims, /*keepDim=*/true);
    mean = b.div(sum, count * scale);
  }
  Value deviation = b.sub(x, mean);
  if (wide)
    deviation = b.cast(deviation, Float64Type::get(op.getContext()));
  Value squares = sumOfSquares(b, deviation, dims, count);
  Number correction =
      b.isNone(op.getCorrection()) ? Number(1) : b.number(op.getCorrection());
  // An empty set has no variance, whatever the correction.
  if (!count)
    return Moments{b.div(squares, 0.0), mean};
  if (correction.isKnown())
    return Moments{b.div(squares, std::max(0.0, count - correction.get())),
                   mean};
  Value divisor = b.cast(b.asTensor(correction), b.dtype(squares));
  return Moments{b.div(squares, b.clampMin(b.sub(count, divisor), 0)), mean};
}

static LogicalResult decomposeVar(AtenVarCorrectionOp op, FormulaBuilder &b) {
  Moments result = moments(op, b);
  return b.replaceWith({result.variance});
}

static LogicalResult decomposeStd(AtenStdCorrectionOp op, FormulaBuilder &b) {
  Moments result = moments(op, b, /*wide=*/true);
  return b.replaceWith({b.sqrt(result.variance)});
}

// The mean as torch returns it together with the variance. Welford's algorithm
// adds (x - mean) / i for the i-th element, so an infinite mean becomes NaN as
// soon as another element follows. (If only the last element is infinite,
// torch's mean is infinite.)
template <typename OpTy>
static Value meanOfUpdates(OpTy op, FormulaBuilder &b, const Moments &result) {
  Value x = op.getSelf();
  if (b.count(x, b.dimensions(op.getDim(), b.rank(x))) == 1)
    return result.mean;
  return b.add(result.mean, b.sub(result.mean, result.mean));
}

static LogicalResult decomposeVarMean(AtenVarMeanCorrectionOp op,
                                      FormulaBuilder &b) {
  Moments result = moments(op, b);
  return b.replaceWith({result.variance, meanOfUpdates(op, b, result)});
}

static LogicalResult decomposeStdMean(AtenStdMeanCorrectionOp op,
                                      FormulaBuilder &b) {
  Moments result = moments(op, b, /*wide=*/true);
  return b.replaceWith({b.sqrt(result.variance), meanOfUpdates(op, b, result)});
}

//===----------------------------------------------------------------------===//
// Norms
//===----------------------------------------------------------------------===//

// The vector norm of `order`. Formulas: NormOps and its special cases in
// aten/src/ATen/native/SharedReduceOps.h.
static Value vectorNorm(FormulaBuilder &b, Value x, double order,
                        ArrayRef<int64_t> dims, bool keepDim) {
  auto sum = [&](Value terms) { return b.sum(terms, dims, keepDim); };
  if (order != 0 && b.count(x, dims) == 1) // the element's power may overflow
    return sum(b.abs(x));
  if (order == 2)
    return b.sqrt(sum(b.square(x)));
  if (order == 1)
    return sum(b.abs(x));
  if (order == 0)
    return sum(b.cast(b.ne(x, 0.0), b.dtype(x)));
  // An empty set has no largest element; its norm is 0 for each order that
  // torch accepts.
  if (std::isinf(order) && b.count(x, dims) == 0)
    return sum(x);
  if (std::isinf(order))
    return order > 0 ? b.amax(b.abs(x), dims, keepDim)
                     : b.amin(b.abs(x), dims, keepDim);
  return b.pow(sum(b.pow(b.abs(x), order)), 1 / order);
}

// The vector norm of an order that is a dynamic scalar: one formula for all
// orders.
static Value vectorNorm(FormulaBuilder &b, Value x, Value order,
                        ArrayRef<int64_t> dims, bool keepDim) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  Value size = b.abs(x);
  if (b.count(x, dims) <= 1)
    return b.where(b.eq(order, 0.0),
                   vectorNorm(b, x, /*order=*/0, dims, keepDim),
                   b.sum(size, dims, keepDim));
  Value isCount = b.eq(order, 0.0);
  Value terms = b.where(isCount, b.cast(b.ne(x, 0.0), b.dtype(x)),
                        b.pow(size, Number::parameter(order)));
  Value root = b.sub(1.0, b.mul(order, 0.0));
  root = b.where(isCount, root, b.div(root, order));
  Value norm = b.pow(b.sum(terms, dims, keepDim), Number::parameter(root));
  norm = b.where(b.eq(order, infinity), b.amax(size, dims, keepDim), norm);
  return b.where(b.eq(order, -infinity), b.amin(size, dims, keepDim), norm);
}

static LogicalResult replaceByNorm(FormulaBuilder &b, Value self, Value order,
                                   ArrayRef<int64_t> dims, bool keepDim) {
  Number p = b.isNone(order) ? Number(2) : b.number(order);
  Value x = b.compute(self, b.resultDtype());
  if (p.isKnown())
    return b.replaceWith({vectorNorm(b, x, p.get(), dims, keepDim)});
  Value dynamic = b.cast(b.asTensor(p), b.dtype(x));
  return b.replaceWith({vectorNorm(b, x, dynamic, dims, keepDim)});
}

static LogicalResult decomposeVectorNorm(AtenLinalgVectorNormOp op,
                                         FormulaBuilder &b) {
  Value self = op.getSelf();
  return replaceByNorm(b, self, op.getOrd(),
                       b.dimensions(op.getDim(), b.rank(self)),
                       b.boolean(op.getKeepdim()));
}

static LogicalResult decomposeNorm(AtenNormScalarOp op, FormulaBuilder &b) {
  return replaceByNorm(b, op.getSelf(), op.getP(), allDims(b, op.getSelf()),
                       /*keepDim=*/false);
}

static LogicalResult decomposeNormDim(AtenNormScalarOptDimOp op,
                                      FormulaBuilder &b) {
  Value self = op.getSelf();
  return replaceByNorm(b, self, op.getP(),
                       b.dimensions(op.getDim(), b.rank(self)),
                       b.boolean(op.getKeepdim()));
}

static LogicalResult decomposeCountNonzero(AtenCountNonzeroDimIntListOp op,
                                           FormulaBuilder &b) {
  Value self = op.getSelf();
  bool isFloat = isa<mlir::FloatType>(b.dtype(self));
  Value isNonzero = b.ne(self, isFloat ? Number(0.0) : Number(0));
  return b.replaceWith({b.sum(b.cast(isNonzero, b.resultDtype()),
                              b.dimensions(op.getDim(), b.rank(self)),
                              /*keepDim=*/false)});
}

void mlir::torch_ltc::populateReductionDecompositionPatterns(
    RewritePatternSet &patterns, const DecompositionOptions &options) {
  DecompositionAdder adder(patterns, options);
  adder.add(decomposeMean);
  adder.add(decomposeMeanDim);
  adder.add(decomposeVar);
  adder.add(decomposeStd);
  adder.add(decomposeVarMean);
  adder.add(decomposeStdMean);
  adder.add(decomposeVectorNorm);
  adder.add(decomposeNorm);
  adder.add(decomposeNormDim);
  adder.add(decomposeCountNonzero);
}
