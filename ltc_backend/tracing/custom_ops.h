//===- custom_ops.h - Ops that others define --------------------*- C++ -*-===//

#ifndef TORCH_LTC_TRACING_CUSTOM_OPS_H
#define TORCH_LTC_TRACING_CUSTOM_OPS_H

#include <ATen/core/dispatch/Dispatcher.h>

#include <atomic>

namespace torch_ltc {

/// From now on ops that anybody defines outside of aten are looked at; those
/// that exist already, at once.
void watchCustomOps();

/// Gives a kernel to each op that was defined since the last call. PyTorch says
/// that there is a new op under a lock that registration needs too, so this
/// waits for the next occasion.
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
