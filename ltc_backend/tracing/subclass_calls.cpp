//===- subclass_calls.cpp - Calls of __torch_dispatch__, and inside it ----===//

#include "tracing/subclass_calls.h"

#include "graph/torch_dispatch.h"
#include "tracing/boxed_kernels.h"
#include "tracing/writing_call.h"

#include <torch/library.h>

using namespace torch_ltc;

namespace {

/// Wraps a kernel at key Lazy, which expects tensors without functional
/// wrappers.
class SubclassCall final : public KernelAround {
public:
  using KernelAround::KernelAround;

  void operator()(const c10::OperatorHandle &op, c10::DispatchKeySet keys,
                  torch::jit::Stack *stack) {
    if (!isInsideTorchDispatch() || !callWithFunctionalization(op, stack))
      previous.callBoxed(op, keys, stack);
  }
};

} // namespace

bool torch_ltc::callWithFunctionalization(const c10::OperatorHandle &op,
                                          torch::jit::Stack *stack) {
  if (!anyTensor(torch::jit::last(*stack, op.schema().arguments().size()),
                 isLazyWrapper))
    return false;
  c10::impl::LocalDispatchKeySet keys = c10::impl::tls_local_dispatch_key_set();
  keys.excluded_ = keys.excluded_.remove(c10::DispatchKey::Functionalize)
                       .remove(c10::DispatchKey::PythonTLSSnapshot);
  c10::impl::ForceDispatchKeyGuard guard(keys);
  op.callBoxed(*stack);
  return true;
}

bool torch_ltc::isBeforePython(c10::DispatchKeySet keys,
                               c10::ArrayRef<c10::IValue> arguments) {
  return isBeforeMode(keys) || (keys.has(c10::DispatchKey::Python) &&
                                anyTensor(arguments, hasTorchDispatch));
}

void torch_ltc::callWithoutFunctionalization(const c10::OperatorHandle &op,
                                             c10::DispatchKeySet keys,
                                             torch::jit::Stack *stack) {
  op.redispatchBoxed(keys &
                         c10::DispatchKeySet(c10::DispatchKeySet::FULL_AFTER,
                                             c10::DispatchKey::Functionalize),
                     stack);
}

void torch_ltc::registerSubclassCalls(const AtenOps &ops) {
  SilentRegistration silent;
  for (const c10::OperatorHandle &op : ops)
    if (op.hasKernelForDispatchKey(c10::DispatchKey::Lazy))
      registerAround<SubclassCall>(op, c10::DispatchKey::Lazy);
}
