//===- passed_functionalization.cpp - Ops that bypass functionalization ---===//
//
// Functionalization treats any operand that isn't one of its wrappers as a
// value, and wraps the op's results. Such operands are tensor subclasses
// (NestedTensor of `torch.jagged`, DTensor), whose Python code must see the
// user's tensors, and tensors of layouts that functionalization doesn't model.
// An op with such an operand bypasses functionalization. An op under a
// TorchDispatchMode bypasses it, too: the mode's Python code must see the op
// that the user called, with the user's tensors. Ops that the Python code calls
// are functionalized (tracing/subclass_calls.h).
//
// The kernels are registered when the first such tensor or mode is created, so
// that they cost nothing in other scripts.
//
//===----------------------------------------------------------------------===//

#include "eager_semantics/registration.h"
#include "fallback/shared_layouts.h"
#include "graph/first_tensor.h"
#include "graph/live_tensors.h"
#include "graph/torch_dispatch.h"
#include "ir/other_ops.h"
#include "tracing/boxed_kernels.h"
#include "tracing/custom_ops.h"
#include "tracing/subclass_calls.h"
#include "tracing/writing_call.h"

#include <ATen/core/stack.h>

#include <mutex>

using namespace torch_ltc;
using at::Tensor;
using c10::DispatchKey;
using c10::OperatorHandle;
using torch::jit::Stack;

namespace {

/// Whether functionalization doesn't model the tensor. True for a nested tensor
/// subclass on the CPU, too: torch (2.13) passes an empty one to the ops that
/// create jagged nested tensors, to dispatch them.
bool isUnmodeled(const Tensor &tensor) {
  if (tensor.key_set().has(DispatchKey::Functionalize))
    return false;
  if (!tensor.device().is_lazy())
    return isSubclass(tensor) && tensor.is_nested();
  return isSubclass(tensor) || hasSharedLayout(tensor);
}

/// Whether the tensor is a functional wrapper with which torch.compile traces.
bool isOfCompile(const Tensor &tensor) {
  return tensor.key_set().has(DispatchKey::Functionalize) &&
         !isLazyWrapper(tensor);
}

/// A kernel at key Functionalize that makes some calls bypass
/// functionalization.
class Pass final : public KernelAround {
public:
  Pass(bool always, c10::SafeKernelFunction previous)
      : KernelAround(std::move(previous)), always(always) {}

  void operator()(const OperatorHandle &op, c10::DispatchKeySet keys,
                  Stack *stack) {
    auto arguments = torch::jit::last(*stack, op.schema().arguments().size());
    bool passes = always || ((anyTensor(arguments, isUnmodeled) ||
                              isBeforePython(keys, arguments)) &&
                             !anyTensor(arguments, isOfCompile));
    if (!passes)
      return previous.callBoxed(op, keys, stack);
    callWithoutFunctionalization(op, keys, stack);
  }

private:
  bool always;
};

void registerOnce() {
  prepareFirstTensor(); // registers the kernels that are bypassed
  SilentRegistration silence;
  for (const OperatorHandle &op : atenOps()) {
    if (!op.hasKernelForDispatchKey(DispatchKey::Functionalize))
      noteKernelAtFunctionalize(op.operator_name());
    registerAround<Pass>(op, DispatchKey::Functionalize,
                         holds(OpFact::MakesNested, op.operator_name().name));
  }
  registerMemorylessViews();
}

} // namespace

void torch_ltc::registerPassedFunctionalization() {
  static std::once_flag once;
  std::call_once(once, registerOnce);
}
