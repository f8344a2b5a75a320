//===- subclass_calls.h - Calls inside of __torch_dispatch__ ----*- C++ -*-===//

#ifndef TORCH_LTC_TRACER_SUBCLASS_CALLS_H
#define TORCH_LTC_TRACER_SUBCLASS_CALLS_H

#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

namespace torch_ltc {

/// Whether functionalisation, which is in front of the Lazy key, was switched
/// off by torch's Python key and not by itself.
inline bool isInsideTorchDispatch() {
  c10::DispatchKeySet excluded =
      c10::impl::tls_local_dispatch_key_set().excluded_;
  return excluded.has(c10::DispatchKey::PythonTLSSnapshot) &&
         excluded.has(c10::DispatchKey::Functionalize);
}

/// The `__torch_dispatch__` of a tensor subclass (DTensor) calls ops on tensors
/// as users hold them, past functionalisation (torch 2.13). Calls `op` with it
/// if an argument is such a tensor; returns whether it did.
bool callWithFunctionalization(const c10::OperatorHandle &op,
                               torch::jit::Stack *stack);

/// Lets hand-written kernels do so, too.
void registerSubclassCalls();

} // namespace torch_ltc

#endif // TORCH_LTC_TRACER_SUBCLASS_CALLS_H
