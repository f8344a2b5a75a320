//===- Scan.cpp - Prefix sums on tensors ----------------------------------===//
//
// A scan of n elements takes log2(n) steps: after each step, an element holds
// the fold over twice as many preceding elements.
//
//===----------------------------------------------------------------------===//

#include "TensorLowering.h"

#include "torch_ltc/Dialect/Torch/TorchOps_reduction.h"

using namespace mlir;
using namespace mlir::torch_ltc;
using namespace mlir::torch_ltc::torch::ops;

/// Shifts `tensor` by `distance` along `dim`, with `neutral` in front.
static Value moved(TensorLowering &op, Value tensor, int64_t dim,
                   int64_t distance, TypedAttr neutral) {
  SmallVector<int64_t> sizes(TensorTarget::sizesOf(tensor));
  SmallVector<int64_t> zeros(sizes.size(), 0), ones(sizes.size(), 1);
  SmallVector<int64_t> low = zeros;
  low[dim] = distance;
  sizes[dim] -= distance;
  Value kept = op.target.slice(tensor, zeros, sizes, ones);
  return op.target.pad(kept, low, zeros, zeros, neutral);
}

/// cumsum and cumprod
template <bool isSum, typename OpTy>
static LogicalResult lowerScan(TensorLowering &op, OpTy args) {
  Type dtype = op.resultDtype(), compute = computeDtypeOf(dtype);
  Value result = op.operandAs(args.getSelf(), compute);
  ArrayRef<int64_t> sizes = op.sizes(args.getSelf());
  if (sizes.empty() || llvm::is_contained(sizes, 0))
    return op.replaceWith(op.convert(result, compute, dtype));
  int64_t dim = op.dimension(args.getDim(), sizes.size());
  TypedAttr neutral = op.scalar(compute, isSum ? 0 : 1);
  for (int64_t distance = 1; distance < sizes[dim]; distance *= 2) {
    Value before = moved(op, result, dim, distance, neutral);
    result = isSum ? op.add(before, result, compute)
                   : op.mul(before, result, compute);
  }
  return op.replaceWith(op.convert(result, compute, dtype));
}

void torch_ltc::populateScanTensorLowerings(TensorLoweringTable &table) {
  table.add(lowerScan<true, AtenCumsumOp>);
  table.add(lowerScan<false, AtenCumprodOp>);
}
