//===- ReshapeOps.h - Ops that only change sizes ----------------*- C++ -*-===//

#ifndef TORCH_LTC_DIALECT_TORCH_RESHAPEOPS_H
#define TORCH_LTC_DIALECT_TORCH_RESHAPEOPS_H

#include "torch_ltc/Dialect/Torch/TorchOps_data_movement.h"

namespace mlir::torch_ltc::torch {

/// Calls `function.operator()<OpTy>()` for each op whose result has the
/// elements of its operand `self` in the same order.
template <typename Function> void forEachReshapeOp(Function function) {
  function.template operator()<AtenViewOp>();
  function.template operator()<Aten_UnsafeViewOp>();
  function.template operator()<AtenUnsqueezeOp>();
  function.template operator()<AtenSqueezeOp>();
  function.template operator()<AtenSqueezeDimOp>();
  function.template operator()<AtenSqueezeDimsOp>();
}

} // namespace mlir::torch_ltc::torch

#endif // TORCH_LTC_DIALECT_TORCH_RESHAPEOPS_H
