//===- subclass_calls.h - Calls inside __torch_dispatch__ -------*- C++ -*-===//

#ifndef TORCH_LTC_TRACING_SUBCLASS_CALLS_H
#define TORCH_LTC_TRACING_SUBCLASS_CALLS_H

#include "tracing/boxed_kernels.h"

namespace torch_ltc {

/// The `__torch_dispatch__` of a tensor subclass (DTensor) calls ops on tensors
/// as users hold them, bypassing functionalization (torch 2.13). If an argument
/// is such a tensor, calls `op` through functionalization; returns whether it
/// did.
bool callWithFunctionalization(const c10::OperatorHandle &op,
                               torch::jit::Stack *stack);

/// Applies it to all current kernels of `ops`.
void registerSubclassCalls(const AtenOps &ops);

} // namespace torch_ltc

#endif // TORCH_LTC_TRACING_SUBCLASS_CALLS_H
