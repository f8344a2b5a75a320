//===- subclass_calls.h - Calls inside __torch_dispatch__ -------*- C++ -*-===//

#ifndef TORCH_LTC_TRACING_SUBCLASS_CALLS_H
#define TORCH_LTC_TRACING_SUBCLASS_CALLS_H

#include "tracing/boxed_kernels.h"

namespace torch_ltc {

/// If an argument is a functional wrapper, calls `op` through functionalization
/// and returns true; otherwise does nothing and returns false. The
/// `__torch_dispatch__` of a tensor subclass (for example, of DTensor) calls
/// ops on wrappers, but bypasses functionalization (torch 2.13).
bool callWithFunctionalization(const c10::OperatorHandle &op,
                               torch::jit::Stack *stack);

/// Makes all current kernels of `ops` at key Lazy first try
/// `callWithFunctionalization` for calls inside a `__torch_dispatch__`.
void registerSubclassCalls(const AtenOps &ops);

} // namespace torch_ltc

#endif // TORCH_LTC_TRACING_SUBCLASS_CALLS_H
