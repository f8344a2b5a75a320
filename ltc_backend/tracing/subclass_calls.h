//===- subclass_calls.h - Calls inside __torch_dispatch__ -------*- C++ -*-===//

#ifndef TORCH_LTC_TRACING_SUBCLASS_CALLS_H
#define TORCH_LTC_TRACING_SUBCLASS_CALLS_H

#include "tracing/boxed_kernels.h"

namespace torch_ltc {

/// Calls `op` through functionalization if an argument is a tensor as users
/// hold it; returns whether it did. The `__torch_dispatch__` of a tensor
/// subclass (DTensor) calls ops on such tensors, bypassing functionalization
/// (torch 2.13).
bool callWithFunctionalization(const c10::OperatorHandle &op,
                               torch::jit::Stack *stack);

/// Makes all current kernels of `ops` at key Lazy try
/// `callWithFunctionalization` first.
void registerSubclassCalls(const AtenOps &ops);

} // namespace torch_ltc

#endif // TORCH_LTC_TRACING_SUBCLASS_CALLS_H
