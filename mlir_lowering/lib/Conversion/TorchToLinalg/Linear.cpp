//===- Linear.cpp - Matrix products to linalg.matmul ----------------------===//
//
// The operands and the result of a product have the same dtype. The library
// that computes the product accumulates 16-bit floats in float32 and rounds
// once.
//
//===----------------------------------------------------------------------===//

#include "OpLowering.h"

using namespace mlir;
using namespace mlir::torch_ltc;

/// The operand in the result's dtype.
static Value factor(OpLowering &op, unsigned position) {
  return op.tensors.convert(op.tensor(position), op.dtype(position),
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

/// mm(self, mat2)
static LogicalResult lowerMm(OpLowering &op) {
  return op.replaceWith(matmul(op, factor(op, 0), factor(op, 1)));
}

/// bmm(self, mat2)
static LogicalResult lowerBmm(OpLowering &op) {
  return op.replaceWith(batchMatmul(op, factor(op, 0), factor(op, 1)));
}

/// mv(self, vec): a product with one column.
static LogicalResult lowerMv(OpLowering &op) {
  Value column = op.tensors.reshape(factor(op, 1), {op.sizes(1)[0], 1});
  return op.replaceWith(matmul(op, factor(op, 0), column));
}

/// dot(self, tensor) and vdot, which is equal for real numbers.
static LogicalResult lowerDot(OpLowering &op) {
  Value row = op.tensors.reshape(factor(op, 0), {1, op.sizes(0)[0]});
  Value column = op.tensors.reshape(factor(op, 1), {op.sizes(1)[0], 1});
  return op.replaceWith(matmul(op, row, column));
}

/// (self, mat1, mat2, beta, alpha): beta * self + alpha * product. If beta is
/// 0, torch ignores self, even its NaNs.
static LogicalResult lowerAddProduct(OpLowering &op, Value product) {
  Type dtype = op.resultDtype(), compute = computeDtypeOf(dtype);
  NumberOperand beta = op.number(3), alpha = op.number(4);
  bool ignoreSelf = beta.asDouble() == 0.0;
  SmallVector<Value> inputs{product};
  if (!ignoreSelf)
    inputs.push_back(factor(op, 0));
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

static LogicalResult lowerAddmm(OpLowering &op) {
  return lowerAddProduct(op, matmul(op, factor(op, 1), factor(op, 2)));
}

static LogicalResult lowerBaddbmm(OpLowering &op) {
  return lowerAddProduct(op, batchMatmul(op, factor(op, 1), factor(op, 2)));
}

static LogicalResult lowerAddmv(OpLowering &op) {
  Value column = op.tensors.reshape(factor(op, 2), {op.sizes(2)[0], 1});
  Value product = matmul(op, factor(op, 1), column);
  return lowerAddProduct(op, op.tensors.flatten(product));
}

void torch_ltc::populateLinearLowerings(LoweringTable &table) {
  table.add("aten.mm", lowerMm);
  table.add("aten.bmm", lowerBmm);
  table.add("aten.mv", lowerMv);
  table.add("aten.dot", lowerDot);
  table.add("aten.vdot", lowerDot);
  table.add("aten.addmm", lowerAddmm, {3, 4});
  table.add("aten.baddbmm", lowerBaddbmm, {3, 4});
  table.add("aten.addmv", lowerAddmv, {3, 4});
}
