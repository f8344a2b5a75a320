//===- Linear.cpp - Matrix products on tensors ----------------------------===//

#include "TensorLowering.h"

using namespace mlir;
using namespace mlir::torch_ltc;

/// Replaces the op by the product of `left` and `right`, which have the compute
/// dtype: 16-bit floats are multiplied and summed in float32, and rounded once.
static LogicalResult lowerProduct(TensorLowering &op, Value left, Value right) {
  Value product = op.target.matmul(left, right);
  return op.replaceWith(
      op.convert(product, computeDtypeOf(op.resultDtype()), op.resultDtype()));
}

static Value matmulOperand(TensorLowering &op, unsigned position) {
  return op.operandAs(position, computeDtypeOf(op.resultDtype()));
}

/// mm(self, mat2): a batched product with a batch of 1.
static LogicalResult lowerMm(TensorLowering &op) {
  auto batched = [&](unsigned position) {
    SmallVector<int64_t> sizes(op.sizes(position));
    sizes.insert(sizes.begin(), 1);
    return op.target.reshape(matmulOperand(op, position), sizes);
  };
  return lowerProduct(op, batched(0), batched(1));
}

/// bmm(self, mat2)
static LogicalResult lowerBmm(TensorLowering &op) {
  return lowerProduct(op, matmulOperand(op, 0), matmulOperand(op, 1));
}

void torch_ltc::populateLinearTensorLowerings(TensorLoweringTable &table) {
  table.add("aten.mm", lowerMm);
  table.add("aten.bmm", lowerBmm);
}
