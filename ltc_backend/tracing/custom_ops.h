//===- custom_ops.h - Ops defined by others ---------------------*- C++ -*-===//

#ifndef TORCH_LTC_TRACING_CUSTOM_OPS_H
#define TORCH_LTC_TRACING_CUSTOM_OPS_H

#include <ATen/core/dispatch/Dispatcher.h>

#include <atomic>

namespace torch_ltc {

/// Starts to check each op that is defined outside aten. Existing ops are
/// checked immediately.
void watchCustomOps();

/// Registers a kernel for each op that was defined since the last call. PyTorch
/// reports a new op under a lock that registration also needs, so this waits
/// for the next opportunity.
void registerNewCustomOps();

extern std::atomic<bool> hasNewCustomOps;

inline void noteNewCustomOps() {
  if (hasNewCustomOps.load(std::memory_order_relaxed)) [[unlikely]]
    registerNewCustomOps();
}

/// Whether an op's kernel at Functionalize is one of these.
bool isOurKernelAtFunctionalize(const c10::OperatorName &name);

} // namespace torch_ltc

#endif // TORCH_LTC_TRACING_CUSTOM_OPS_H
