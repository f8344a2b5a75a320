//===- HostCall.h - Ops that PyTorch's own kernels compute ------*- C++ -*-===//

#ifndef TORCH_LTC_CONVERSION_TORCHTOLINALG_HOSTCALL_H
#define TORCH_LTC_CONVERSION_TORCHTOLINALG_HOSTCALL_H

#include "OpLowering.h"

#include "torch_ltc/Dialect/Ltc/LtcDialect.h"

namespace mlir::torch_ltc {

/// Replaces the op by `ltc.host_call`: a command of the program that calls
/// PyTorch's kernel. It is used if PyTorch's kernel is as fast as ours would
/// be, or if the result depends on the kernel's order of operations.
LogicalResult lowerHostCall(OpLowering &op);

/// Expands a host call of sort or topk to linalg and scf; the sort is stable.
SmallVector<Value> expandHostSort(OpBuilder &builder, ltc::HostCallOp call);
bool isHostSort(ltc::HostCallOp call);

/// Expands a host call of masked_scatter to linalg and scf, without the error
/// for a source that is too short.
Value expandHostMaskedScatter(OpBuilder &builder, ltc::HostCallOp call);
bool isHostMaskedScatter(ltc::HostCallOp call);

} // namespace mlir::torch_ltc

#endif // TORCH_LTC_CONVERSION_TORCHTOLINALG_HOSTCALL_H
