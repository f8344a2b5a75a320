//===- Linear.cpp - Matrix products on tensors ----------------------------===//

#include "TensorLowering.h"

#include "torch_ltc/Dialect/Torch/TorchOps_linear.h"

using namespace mlir;
using namespace mlir::torch_ltc;
using namespace mlir::torch_ltc::torch::ops;

/// Replaces the op by the product of `left` and `right`, which have the compute
/// dtype: 16-bit floats are multiplied and summed in float32, and rounded once.
static LogicalResult lowerProduct(TensorLowering &op, Value left, Value right) {
  Value product = op.target.matmul(left, right);
  return op.replaceWith(
      op.convert(product, computeDtypeOf(op.resultDtype()), op.resultDtype()));
}

static Value matmulOperand(TensorLowering &op, Value argument) {
  return op.operandAs(argument, computeDtypeOf(op.resultDtype()));
}

/// A batched product with a batch of 1.
static LogicalResult lowerMm(TensorLowering &op, AtenMmOp args) {
  auto batched = [&](Value argument) {
    SmallVector<int64_t> sizes(op.sizes(argument));
    sizes.insert(sizes.begin(), 1);
    return op.target.reshape(matmulOperand(op, argument), sizes);
  };
  return lowerProduct(op, batched(args.getSelf()), batched(args.getMat2()));
}

static LogicalResult lowerBmm(TensorLowering &op, AtenBmmOp args) {
  return lowerProduct(op, matmulOperand(op, args.getSelf()),
                      matmulOperand(op, args.getMat2()));
}

void torch_ltc::populateLinearTensorLowerings(TensorLoweringTable &table) {
  table.add(lowerMm);
  table.add(lowerBmm);
}
