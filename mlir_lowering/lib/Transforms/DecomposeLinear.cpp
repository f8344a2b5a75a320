//===- DecomposeLinear.cpp - Products with an addend, products of vectors -===//
//
// Formulas: aten/src/ATen/native/LinearAlgebra.cpp and Blas.cpp.
//
//===----------------------------------------------------------------------===//

#include "FormulaBuilder.h"

#include "torch_ltc/Dialect/Torch/TorchOps_linear.h"

using namespace mlir;
using namespace mlir::torch_ltc;
using namespace mlir::torch_ltc::torch;

// factor * x, or 0 if the factor is 0: then torch doesn't read x, so its NaNs
// have no effect.
static Value scaled(FormulaBuilder &b, Value x, Number factor) {
  if (factor.is(1))
    return x;
  if (factor.is(0))
    return b.zeros(b.sizes(x), b.dtype(x));
  Value product = b.mul(x, factor);
  if (factor.isKnown())
    return product;
  return b.maskedFill(product, b.eq(b.asTensor(factor), Number(0)), Number(0));
}

// beta * self + scaledProduct
template <typename OpTy>
static LogicalResult replaceByAddend(OpTy op, FormulaBuilder &b,
                                     Value scaledProduct) {
  Number beta = b.number(op.getBeta());
  if (beta.is(0))
    return b.replaceWith({scaledProduct});
  Value addend = b.cast(op.getSelf(), b.dtype(scaledProduct));
  return b.replaceWith({b.add(scaledProduct, scaled(b, addend, beta))});
}

// beta * self + alpha * product. As in eager, alpha isn't used if the product
// sums no elements.
template <typename OpTy>
static LogicalResult replaceBySum(OpTy op, FormulaBuilder &b, Value product,
                                  int64_t inner) {
  if (inner == 0)
    return replaceByAddend(op, b, product);
  return replaceByAddend(op, b, scaled(b, product, b.number(op.getAlpha())));
}

static Value columnOf(FormulaBuilder &b, Value vector) {
  return b.view(vector, {b.numElements(vector), 1});
}
static Value rowOf(FormulaBuilder &b, Value vector) {
  return b.view(vector, {1, b.numElements(vector)});
}

static LogicalResult decomposeAddmm(AtenAddmmOp op, FormulaBuilder &b) {
  return replaceBySum(op, b, b.mm(op.getMat1(), op.getMat2()),
                      b.sizes(op.getMat1())[1]);
}

static LogicalResult decomposeBaddbmm(AtenBaddbmmOp op, FormulaBuilder &b) {
  return replaceBySum(op, b, b.bmm(op.getBatch1(), op.getBatch2()),
                      b.sizes(op.getBatch1())[2]);
}

// The batch becomes a part of the inner dimension, over which the product sums:
// [N, B * M] x [B * M, P].
static LogicalResult decomposeAddbmm(AtenAddbmmOp op, FormulaBuilder &b) {
  Value first = op.getBatch1(), second = op.getBatch2();
  int64_t batch = b.sizes(first)[0], rows = b.sizes(first)[1];
  int64_t inner = b.sizes(first)[2], columns = b.sizes(second)[2];
  Value left = b.view(b.permute(first, {1, 0, 2}), {rows, batch * inner});
  Value right = b.view(second, {batch * inner, columns});
  return replaceBySum(op, b, b.mm(left, right), batch * inner);
}

static Value matrixVector(FormulaBuilder &b, Value matrix, Value vector) {
  return b.view(b.mm(matrix, columnOf(b, vector)), {b.sizes(matrix)[0]});
}

static LogicalResult decomposeAddmv(AtenAddmvOp op, FormulaBuilder &b) {
  return replaceBySum(op, b, matrixVector(b, op.getMat(), op.getVec()),
                      b.sizes(op.getMat())[1]);
}

static LogicalResult decomposeAddr(AtenAddrOp op, FormulaBuilder &b) {
  Type dtype = b.resultDtype(); // vectors of different dtypes are promoted
  Value product = b.mul(columnOf(b, b.cast(op.getVec1(), dtype)),
                        rowOf(b, b.cast(op.getVec2(), dtype)));
  // Unlike for the other ops, torch multiplies by an alpha of 0.
  Number alpha = b.number(op.getAlpha());
  if (!alpha.is(1))
    product = b.mul(product, alpha);
  return replaceByAddend(op, b, product);
}

static LogicalResult decomposeMv(AtenMvOp op, FormulaBuilder &b) {
  return b.replaceWith({matrixVector(b, op.getSelf(), op.getVec())});
}

// Reshapes a tensor to a matrix: all dimensions but the last become rows.
static Value matrixOf(FormulaBuilder &b, Value tensor) {
  auto dims = llvm::to_vector(llvm::seq<int64_t>(0, b.rank(tensor) - 1));
  return b.view(tensor, {b.count(tensor, dims), b.sizes(tensor).back()});
}

static LogicalResult decomposeLinear(AtenLinearOp op, FormulaBuilder &b) {
  Value product =
      b.mm(matrixOf(b, op.getInput()), b.permute(op.getWeight(), {1, 0}));
  if (!b.isNone(op.getBias()))
    product = b.add(product, op.getBias());
  return b.replaceWith({product});
}

static LogicalResult decomposeLinearBackward(TorchLtcLinearBackwardOp op,
                                             FormulaBuilder &b) {
  Value grad = matrixOf(b, op.getGradOutput());
  Value gradInput, gradWeight, gradBias;
  if (!b.isNone(op.getWeight()) && b.isUsed(0))
    gradInput = b.mm(grad, op.getWeight());
  if (!b.isNone(op.getInput()) && b.isUsed(1))
    gradWeight = b.mm(b.permute(grad, {1, 0}), matrixOf(b, op.getInput()));
  if (b.boolean(op.getBias()) && b.isUsed(2))
    gradBias = b.sum(grad, {0}, /*keepDim=*/false);
  return b.replaceWith({gradInput, gradWeight, gradBias});
}

static LogicalResult replaceByDot(FormulaBuilder &b, Value x, Value y) {
  return b.replaceWith(
      {b.sum(b.mul(b.compute(x), b.compute(y)), {0}, /*keepDim=*/false)});
}

static LogicalResult decomposeDot(AtenDotOp op, FormulaBuilder &b) {
  return replaceByDot(b, op.getSelf(), op.getTensor());
}

// The conjugate of a real number is the number itself.
static LogicalResult decomposeVdot(AtenVdotOp op, FormulaBuilder &b) {
  return replaceByDot(b, op.getSelf(), op.getOther());
}

void mlir::torch_ltc::populateLinearDecompositionPatterns(
    RewritePatternSet &patterns, const DecompositionOptions &options) {
  DecompositionAdder adder(patterns, options);
  adder.add(decomposeAddmm);
  adder.add(decomposeBaddbmm);
  adder.add(decomposeAddbmm);
  adder.add(decomposeAddmv);
  adder.add(decomposeAddr);
  adder.add(decomposeMv);
  adder.add(decomposeDot);
  adder.add(decomposeVdot);
  adder.add(decomposeLinear);
  adder.add(decomposeLinearBackward);
}
