//===- Complex.cpp - Ops on tensors of complex numbers --------------------===//
//
// A tensor of complex numbers is stored as a tensor of floats with an
// additional last dim of size 2, the real and the imaginary part, which is how
// PyTorch stores it. So a view of one as the other is the operand itself. All
// other ops are computed by PyTorch's kernels, whatever their rows in the op
// table say (lib/Transforms/DecomposeComplex.cpp decomposes those for which
// another way is better).
//
//===----------------------------------------------------------------------===//

#include "HostCall.h"

#include "torch_ltc/Dialect/Torch/TorchOps.h"
#include "torch_ltc/Dialect/Torch/TorchOps_complex.h"

using namespace mlir;
using namespace mlir::torch_ltc;

LogicalResult torch_ltc::lowerComplex(OpLowering &op) {
  if (isa<torch::AtenViewAsRealOp, torch::AtenViewAsComplexOp>(op.op))
    return op.replaceWith(op.tensor(op.op->getOperand(0)));
  return lowerHostCall(op);
}

void torch_ltc::populateComplexLowerings(LoweringTable &table) {
  table.add("aten.view_as_real", lowerComplex);
  table.add("aten.view_as_complex", lowerComplex);
}
