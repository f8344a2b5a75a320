//===- Linear.cpp - Matrix products to linalg.matmul ----------------------===//
//
// The operands and the result of a product have the same dtype. The library
// that computes the product accumulates 16-bit floats in float32 and rounds
// once.
//
//===----------------------------------------------------------------------===//

#include "OpLowering.h"

#include "torch_ltc/Dialect/Torch/TorchOps_linear.h"

using namespace mlir;
using namespace mlir::torch_ltc;
using namespace mlir::torch_ltc::torch::ops;

/// The operand in the result's dtype.
static Value factor(OpLowering &op, Value argument) {
  return op.tensors.convert(op.tensor(argument), op.dtype(argument),
                            op.resultDtype());
}

static Value matmul(OpLowering &op, Value left, Value right) {
  auto leftType = cast<RankedTensorType>(left.getType());
  auto rightType = cast<RankedTensorType>(right.getType());
  Value zeros = op.tensors.zeros(
      {leftType.getDimSize(0), rightType.getDimSize(1)}, op.resultDtype());
  return linalg::MatmulOp::create(op.builder, op.loc, ValueRange{left, right},
                                  zeros)
      .getResult(0);
}

static Value batchMatmul(OpLowering &op, Value left, Value right) {
  auto leftType = cast<RankedTensorType>(left.getType());
  auto rightType = cast<RankedTensorType>(right.getType());
  Value zeros = op.tensors.zeros(
      {leftType.getDimSize(0), leftType.getDimSize(1), rightType.getDimSize(2)},
      op.resultDtype());
  return linalg::BatchMatmulOp::create(op.builder, op.loc,
                                       ValueRange{left, right}, zeros)
      .getResult(0);
}

static LogicalResult lowerMm(OpLowering &op, AtenMmOp args) {
  return op.replaceWith(
      matmul(op, factor(op, args.getSelf()), factor(op, args.getMat2())));
}

static LogicalResult lowerBmm(OpLowering &op, AtenBmmOp args) {
  return op.replaceWith(
      batchMatmul(op, factor(op, args.getSelf()), factor(op, args.getMat2())));
}

/// A product with one column.
static LogicalResult lowerMv(OpLowering &op, AtenMvOp args) {
  Value column = op.tensors.reshape(factor(op, args.getVec()),
                                    {op.sizes(args.getVec())[0], 1});
  return op.replaceWith(matmul(op, factor(op, args.getSelf()), column));
}

/// The scalar product of two vectors, as a matrix with one element.
static Value dot(OpLowering &op, Value left, Value right) {
  int64_t size = op.sizes(left)[0];
  Value row = op.tensors.reshape(factor(op, left), {1, size});
  Value column = op.tensors.reshape(factor(op, right), {size, 1});
  return matmul(op, row, column);
}

static LogicalResult lowerDot(OpLowering &op, AtenDotOp args) {
  return op.replaceWith(dot(op, args.getSelf(), args.getTensor()));
}

/// Equals dot for real numbers.
static LogicalResult lowerVdot(OpLowering &op, AtenVdotOp args) {
  return op.replaceWith(dot(op, args.getSelf(), args.getOther()));
}

/// beta * self + alpha * product. If beta is 0, torch ignores self, even its
/// NaNs.
template <typename OpTy>
static LogicalResult lowerAddProduct(OpLowering &op, OpTy args, Value product) {
  Type dtype = op.resultDtype(), compute = computeDtypeOf(dtype);
  NumberOperand beta = op.number(args.getBeta());
  NumberOperand alpha = op.number(args.getAlpha());
  bool ignoreSelf = beta.asDouble() == 0.0;
  SmallVector<Value> inputs{product};
  if (!ignoreSelf)
    inputs.push_back(factor(op, args.getSelf()));
  Value result = op.tensors.elementwise(
      op.resultSizes(), storageTypeOf(dtype), inputs,
      [&](OpBuilder &nested, Location loc, ValueRange elements) {
        ScalarBuilder s(nested, loc, compute);
        Value sum = s.convert(elements[0], dtype, compute);
        if (alpha.asDouble() != 1.0)
          sum = s.mul(alpha.materialize(nested, loc, compute), sum);
        if (!ignoreSelf) {
          Value self = s.convert(elements[1], dtype, compute);
          if (beta.asDouble() != 1.0)
            self = s.mul(beta.materialize(nested, loc, compute), self);
          sum = s.add(self, sum);
        }
        return SmallVector<Value>{s.convert(sum, compute, dtype)};
      })[0];
  return op.replaceWith(result);
}

static LogicalResult lowerAddmm(OpLowering &op, AtenAddmmOp args) {
  return lowerAddProduct(
      op, args,
      matmul(op, factor(op, args.getMat1()), factor(op, args.getMat2())));
}

static LogicalResult lowerBaddbmm(OpLowering &op, AtenBaddbmmOp args) {
  return lowerAddProduct(op, args,
                         batchMatmul(op, factor(op, args.getBatch1()),
                                     factor(op, args.getBatch2())));
}

static LogicalResult lowerAddmv(OpLowering &op, AtenAddmvOp args) {
  Value column = op.tensors.reshape(factor(op, args.getVec()),
                                    {op.sizes(args.getVec())[0], 1});
  Value product = matmul(op, factor(op, args.getMat()), column);
  return lowerAddProduct(op, args, op.tensors.flatten(product));
}

void torch_ltc::populateLinearLowerings(LoweringTable &table) {
  table.add(lowerMm);
  table.add(lowerBmm);
  table.add(lowerMv);
  table.add(lowerDot);
  table.add(lowerVdot);
  table.add(lowerAddmm);
  table.add(lowerBaddbmm);
  table.add(lowerAddmv);
}
