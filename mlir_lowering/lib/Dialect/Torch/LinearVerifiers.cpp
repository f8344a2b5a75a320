//===- LinearVerifiers.cpp - Shapes of matrix products --------------------===//

#include "torch_ltc/Dialect/Torch/TorchOps_linear.h"

using namespace mlir;
using namespace mlir::torch_ltc::torch;

/// Verifies the sizes of [batch, m, k] x [batch, k, n] -> [batch, m, n], or of
/// single matrices if `rank` is 2.
template <typename OpTy>
static LogicalResult verifyProduct(OpTy op, int64_t rank) {
  auto type = [](Value value) {
    return cast<ValueTensorType>(value.getType());
  };
  ValueTensorType a = type(op.getSelf()), b = type(op.getMat2()),
                  c = type(op.getResult());
  if (!a.isStatic() || !b.isStatic() || !c.isStatic())
    return success();
  auto error = [&]() -> LogicalResult {
    return op.emitOpError()
           << "sizes of a matrix product don't match: " << Type(a) << " x "
           << Type(b) << " -> " << Type(c);
  };
  if (a.getRank() != rank || b.getRank() != rank || c.getRank() != rank)
    return error();
  ArrayRef<int64_t> x = a.getSizes(), y = b.getSizes();
  SmallVector<int64_t> expected(x.drop_back());
  expected.push_back(y.back());
  bool fits = x.back() == y[rank - 2] && c.getSizes() == ArrayRef(expected) &&
              x.drop_back(2) == y.drop_back(2);
  return fits ? success() : error();
}

LogicalResult AtenMmOp::verify() { return verifyProduct(*this, 2); }
LogicalResult AtenBmmOp::verify() { return verifyProduct(*this, 3); }
