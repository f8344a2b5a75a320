//===- math_bits.cpp - Tensors that are conjugate or negative views -------===//
//
// Eager's `conj()` is a view with a bit that requests conjugation of its
// elements when they are read; the imaginary part of such a view has a bit that
// requests negation. The value of a lazy tensor is always the one that a user
// would read. The bits of a lazy tensor only describe it: nothing needs to be
// resolved, and PyTorch's kernels that would do so (at keys Conjugate and
// Negative) are bypassed. A view has the bits of its base.
//
// Conjugate and negative views are rare, so most of these kernels are
// registered when the first such view is created.
//
//===----------------------------------------------------------------------===//

#include "eager_semantics/registration.h"
#include "tracing/boxed_kernels.h"
#include "tracing/writing_call.h"

#include <ATen/core/Tensor.h>
#include <ATen/core/stack.h>

#include <mutex>

using namespace torch_ltc;
using at::Tensor;
using c10::DispatchKey;
using c10::OperatorHandle;
using torch::jit::Stack;

namespace {

/// Bypasses torch's kernels at key Conjugate or Negative for lazy tensors.
class PassBy final : public c10::OperatorKernel {
public:
  PassBy(DispatchKey key, c10::SafeKernelFunction previous)
      : key(key), previous(std::move(previous)) {}

  void operator()(const OperatorHandle &op, c10::DispatchKeySet keys,
                  Stack *stack) {
    if (!anyTensor(
            torch::jit::last(*stack, op.schema().arguments().size()),
            [](const Tensor &tensor) { return tensor.device().is_lazy(); }))
      return previous.callBoxed(op, keys, stack);
    op.redispatchBoxed(
        keys & c10::DispatchKeySet(c10::DispatchKeySet::FULL_AFTER, key),
        stack);
  }

private:
  DispatchKey key;
  c10::SafeKernelFunction previous;
};

/// Wraps a view op at key Functionalize, to give the result the operand's bits.
class ViewWithBits final : public c10::OperatorKernel {
public:
  explicit ViewWithBits(c10::SafeKernelFunction previous)
      : previous(std::move(previous)) {}

  void operator()(const OperatorHandle &op, c10::DispatchKeySet keys,
                  Stack *stack) {
    const Tensor self =
        torch::jit::peek(*stack, 0, op.schema().arguments().size()).toTensor();
    previous.callBoxed(op, keys, stack);
    if (self.is_conj() || self.is_neg())
      mapTensors(stack->back(), [&](const Tensor &view) {
        view._set_conj(self.is_conj() && view.is_complex());
        view._set_neg(self.is_neg());
        return view;
      });
  }

private:
  c10::SafeKernelFunction previous;
};

/// Wraps a view op that changes the dtype, to reject conjugate views as eager
/// does.
class OtherDType final : public c10::OperatorKernel {
public:
  OtherDType(const char *refusal, c10::SafeKernelFunction previous)
      : refusal(refusal), previous(std::move(previous)) {}

  void operator()(const OperatorHandle &op, c10::DispatchKeySet keys,
                  Stack *stack) {
    const Tensor &self =
        torch::jit::peek(*stack, 0, op.schema().arguments().size()).toTensor();
    TORCH_CHECK(!self.device().is_lazy() || !self.is_conj(), refusal);
    previous.callBoxed(op, keys, stack);
  }

private:
  const char *refusal;
  c10::SafeKernelFunction previous;
};

bool isView(const OperatorHandle &op) {
  const c10::FunctionSchema &schema = op.schema();
  return !schema.is_mutable() && !schema.returns().empty() &&
         schema.returns()[0].alias_info() && !schema.arguments().empty() &&
         schema.arguments()[0].type()->kind() == c10::TypeKind::TensorType;
}

void registerForBits() {
  SilentRegistration silence;
  for (const OperatorHandle &op : atenOps()) {
    if (op.hasKernelForDispatchKey(DispatchKey::CompositeImplicitAutograd))
      continue;
    for (DispatchKey key : {DispatchKey::Conjugate, DispatchKey::Negative})
      if (!op.hasKernelForDispatchKey(key)) // existing kernels fall through
        registerAround<PassBy>(op, key, key);
    const std::string &name = op.operator_name().name;
    if (isView(op) && name != "aten::_conj" && name != "aten::_neg_view")
      registerAround<ViewWithBits>(op, DispatchKey::Functionalize);
  }
  registerAround<OtherDType>(
      findOp({"aten::view_as_real", ""}), DispatchKey::Functionalize,
      "view_as_real doesn't work on unresolved conjugated tensors.  To resolve "
      "the conjugate tensor so you can view it as real, use "
      "self.resolve_conj(); however, be warned that the resulting tensor will "
      "NOT alias the original.");
  registerAround<OtherDType>(
      findOp({"aten::view", "dtype"}), DispatchKey::Functionalize,
      "torch.Tensor.view is not supported for conjugate view tensors when "
      "converting to a different dtype.");
}

/// Wraps `_conj` or `_neg_view`, each of which toggles a bit.
class TurnBit final : public c10::OperatorKernel {
public:
  TurnBit(bool isConj, c10::SafeKernelFunction previous)
      : isConj(isConj), previous(std::move(previous)) {}

  void operator()(const OperatorHandle &op, c10::DispatchKeySet keys,
                  Stack *stack) {
    const Tensor self = stack->back().toTensor();
    previous.callBoxed(op, keys, stack);
    const Tensor &view = stack->back().toTensor();
    if (!isLazyWrapper(view))
      return;
    static std::once_flag once;
    std::call_once(once, registerForBits);
    view._set_conj(self.is_conj() != isConj);
    view._set_neg(self.is_neg() == isConj);
  }

private:
  bool isConj;
  c10::SafeKernelFunction previous;
};

} // namespace

void torch_ltc::registerMathBits() {
  SilentRegistration silence;
  for (auto [name, isConj] :
       {std::pair("aten::_conj", true), std::pair("aten::_neg_view", false)})
    registerAround<TurnBit>(findOp({name, ""}), DispatchKey::Functionalize,
                            isConj);
}
