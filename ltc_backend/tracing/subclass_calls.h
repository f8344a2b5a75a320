//===- subclass_calls.h - Calls of __torch_dispatch__, and inside *- C++
//-*-===//

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

/// Whether the Python key is among the keys that are still to be dispatched,
/// for a TorchDispatchMode or for the `__torch_dispatch__` of an argument's
/// class. The argument may be on the CPU.
bool isBeforePython(c10::DispatchKeySet keys,
                    c10::ArrayRef<c10::IValue> arguments);

/// Called by a kernel at key Functionalize: calls the kernel of the next key.
void callWithoutFunctionalization(const c10::OperatorHandle &op,
                                  c10::DispatchKeySet keys,
                                  torch::jit::Stack *stack);

/// Makes all current kernels of `ops` at key Lazy first try
/// `callWithFunctionalization` for calls inside a `__torch_dispatch__`.
void registerSubclassCalls(const AtenOps &ops);

} // namespace torch_ltc

#endif // TORCH_LTC_TRACING_SUBCLASS_CALLS_H
