//===- subclass_calls.h - Calls inside of __torch_dispatch__ ----*- C++ -*-===//

#ifndef TORCH_LTC_TRACING_SUBCLASS_CALLS_H
#define TORCH_LTC_TRACING_SUBCLASS_CALLS_H

#include "tracing/boxed_kernels.h"

namespace torch_ltc {

/// The `__torch_dispatch__` of a tensor subclass (DTensor) calls ops on tensors
/// as users hold them, past functionalisation (torch 2.13). Calls `op` with it
/// if an argument is such a tensor; returns whether it did.
bool callWithFunctionalization(const c10::OperatorHandle &op,
                               torch::jit::Stack *stack);

/// Lets all kernels do so that those of `ops` have up to now.
void registerSubclassCalls(const AtenOps &ops);

} // namespace torch_ltc

#endif // TORCH_LTC_TRACING_SUBCLASS_CALLS_H
