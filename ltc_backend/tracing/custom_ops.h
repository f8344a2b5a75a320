//===- custom_ops.h - Ops defined outside aten ------------------*- C++ -*-===//

#ifndef TORCH_LTC_TRACING_CUSTOM_OPS_H
#define TORCH_LTC_TRACING_CUSTOM_OPS_H

#include <ATen/core/dispatch/Dispatcher.h>

#include <atomic>

namespace torch_ltc {

/// Registers kernels for the existing ops outside aten, and starts to watch for
/// new ones.
void watchCustomOps();

/// Registers a kernel for each op that was defined since the last call. PyTorch
/// reports a new op under a lock that registration also needs, so kernels are
/// registered later, when the next op is traced.
void registerNewCustomOps();

extern std::atomic<bool> hasNewCustomOps;

inline void noteNewCustomOps() {
  if (hasNewCustomOps.load(std::memory_order_relaxed)) [[unlikely]]
    registerNewCustomOps();
}

/// Whether the op's kernel at Functionalize is this library's, and torch has
/// none.
bool isOurKernelAtFunctionalize(const c10::OperatorName &name);
/// Makes the function above true for the op.
void noteKernelAtFunctionalize(const c10::OperatorName &name);

} // namespace torch_ltc

#endif // TORCH_LTC_TRACING_CUSTOM_OPS_H
