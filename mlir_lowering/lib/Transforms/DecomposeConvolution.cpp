//===- DecomposeConvolution.cpp - Gradients of transposed convolutions ----===//
//
// A transposed convolution computes the gradient of a plain convolution's input
// from the gradient of its output. Therefore, the gradient of its own input is
// a plain convolution of the gradient of its output. The gradient of its weight
// is the weight gradient of that plain convolution, whose input is the gradient
// of the transposed convolution's output and whose output gradient is the
// transposed convolution's input. Formula:
// aten/src/ATen/native/Convolution.cpp, which makes the same exchange in
// _convolution_double_backward. torch-mlir (20261001) and IREE (3.13) support
// these gradients only in decomposed form.
//
//===----------------------------------------------------------------------===//

#include "FormulaBuilder.h"

#include "torch_ltc/Dialect/Torch/TorchOps_convolution.h"

using namespace mlir;
using namespace mlir::torch_ltc;
using namespace mlir::torch_ltc::torch;

static LogicalResult decomposeConvolutionBackward(AtenConvolutionBackwardOp op,
                                                  FormulaBuilder &b) {
  if (!b.boolean(op.getTransposed()))
    return failure(); // every target supports this form
  SmallVector<bool> mask = b.booleans(op.getOutputMask());
  Value gradient = op.getGradOutput(), weight = op.getWeight();
  int64_t rank = b.rank(gradient);
  auto isWanted = [&](unsigned i) { return mask[i] && b.isUsed(i); };
  Value results[3];
  if (isWanted(0))
    results[0] =
        b.convolution(gradient, weight, op.getStride(), op.getPadding(),
                      op.getDilation(), op.getGroups(), b.resultSizes(0));
  if (isWanted(1))
    results[1] = b.convolutionWeightGradient(
        /*gradOutput=*/op.getInput(), /*input=*/gradient, weight,
        op.getStride(), op.getPadding(), op.getDilation(), op.getGroups());
  if (isWanted(2)) {
    SmallVector<int64_t> dims{0};
    llvm::append_range(dims, llvm::seq<int64_t>(2, rank));
    results[2] = b.sum(b.compute(gradient), dims, /*keepDim=*/false);
  }
  for (unsigned i = 0; i < 3; ++i)
    if (!results[i] && b.isUsed(i))
      results[i] = b.zeros(b.resultSizes(i), b.resultDtype(i));
  return b.replaceWith(results);
}

void mlir::torch_ltc::populateConvolutionDecompositionPatterns(
    RewritePatternSet &patterns, const DecompositionOptions &options) {
  DecompositionAdder adder(patterns, options);
  adder.add(decomposeConvolutionBackward);
}
