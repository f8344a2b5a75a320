//===- math_bits.cpp - Conjugate and negative views, zero tensors ---------===//
//
// Eager's `conj()` is a view with a bit that requests conjugation of its
// elements when they are read; the imaginary part of such a view has a bit that
// requests negation. The value of a lazy tensor is always the one that a user
// would read. The bits of a lazy tensor only describe it: nothing needs to be
// resolved, and PyTorch's kernels that would do so (at keys Conjugate and
// Negative) are bypassed. A view has the bits of its base.
//
// Autograd returns `_efficientzerotensor` as a gradient or tangent that is zero
// by its formula, whatever the values are. torch's kernels at key ZeroTensor
// keep such a tensor zero when it is multiplied, also by an infinity, and hand
// zeros to all other ops. A zero tensor has that key, and so have its views.
//
// Such tensors are rare, so most of these kernels are registered when the first
// one is created.
//
//===----------------------------------------------------------------------===//

#include "eager_semantics/registration.h"
#include "graph/live_tensors.h"
#include "tracing/boxed_kernels.h"
#include "tracing/writing_call.h"

#include <ATen/Functions.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/stack.h>

#include <mutex>

using namespace torch_ltc;
using at::Tensor;
using c10::DispatchKey;
using c10::OperatorHandle;
using torch::jit::Stack;

namespace {

/// Bypasses torch's kernels at a key for lazy tensors.
class PassBy final : public KernelAround {
public:
  PassBy(DispatchKey key, c10::SafeKernelFunction previous)
      : KernelAround(std::move(previous)), key(key) {}

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
};

void markZero(const Tensor &tensor) {
  auto &keys = dispatchKeysOf(*tensor.unsafeGetTensorImpl());
  keys = keys.add(DispatchKey::ZeroTensor);
}

/// Wraps a view op at key Functionalize, to give the result the operand's bits.
class ViewWithBits final : public KernelAround {
public:
  using KernelAround::KernelAround;

  void operator()(const OperatorHandle &op, c10::DispatchKeySet keys,
                  Stack *stack) {
    const Tensor self =
        torch::jit::peek(*stack, 0, op.schema().arguments().size()).toTensor();
    previous.callBoxed(op, keys, stack);
    if (self.is_conj() || self.is_neg() || self._is_zerotensor())
      mapTensors(stack->back(), [&](const Tensor &view) {
        view._set_conj(self.is_conj() && view.is_complex());
        view._set_neg(self.is_neg());
        if (self._is_zerotensor())
          markZero(view);
        return view;
      });
  }
};

/// Wraps a view op that changes the dtype, to reject conjugate views as eager
/// does.
class OtherDType final : public KernelAround {
public:
  OtherDType(const char *message, c10::SafeKernelFunction previous)
      : KernelAround(std::move(previous)), message(message) {}

  void operator()(const OperatorHandle &op, c10::DispatchKeySet keys,
                  Stack *stack) {
    const Tensor &self =
        torch::jit::peek(*stack, 0, op.schema().arguments().size()).toTensor();
    TORCH_CHECK(!self.device().is_lazy() || !self.is_conj(), message);
    previous.callBoxed(op, keys, stack);
  }

private:
  const char *message;
};

/// Wraps `dot` and `vdot` at key Functionalize: their CPU kernels, not those at
/// key ZeroTensor, return zero tensors.
class DotOfZeros final : public KernelAround {
public:
  using KernelAround::KernelAround;

  void operator()(const OperatorHandle &op, c10::DispatchKeySet keys,
                  Stack *stack) {
    const Tensor self = torch::jit::peek(*stack, 0, 2).toTensor();
    bool isZero =
        anyTensor(torch::jit::last(*stack, 2),
                  [](const Tensor &tensor) { return tensor._is_zerotensor(); });
    previous.callBoxed(op, keys, stack); // checks sizes and dtypes
    if (isLazyWrapper(self) && isZero)
      stack->back() = at::_efficientzerotensor({}, self.options());
  }
};

bool isView(const OperatorHandle &op) {
  const c10::FunctionSchema &schema = op.schema();
  return !schema.is_mutable() && !schema.returns().empty() &&
         schema.returns()[0].alias_info() && !schema.arguments().empty() &&
         schema.arguments()[0].type()->kind() == c10::TypeKind::TensorType;
}

bool isComposite(const OperatorHandle &op) {
  return op.hasKernelForDispatchKey(DispatchKey::CompositeImplicitAutograd);
}

void registerViewsWithBits() {
  [[maybe_unused]] static const bool isFirst = [] {
    SilentRegistration silence;
    for (const OperatorHandle &op : atenOps()) {
      const std::string &name = op.operator_name().name;
      if (!isComposite(op) && isView(op) && name != "aten::_conj" &&
          name != "aten::_neg_view")
        registerAround<ViewWithBits>(op, DispatchKey::Functionalize);
    }
    return true;
  }();
}

/// Registers the kernels that zero tensors need.
void registerForZeros() {
  registerViewsWithBits();
  [[maybe_unused]] static const bool isFirst = [] {
    SilentRegistration silence;
    // torch's kernels of view ops at this key create a tensor that isn't a
    // functional wrapper.
    for (const OperatorHandle &op : atenOps())
      if (isView(op) && !isComposite(op) &&
          op.hasKernelForDispatchKey(DispatchKey::ZeroTensor) &&
          !op.isKernelFallthroughKernel(DispatchKey::ZeroTensor))
        registerAround<PassBy>(op, DispatchKey::ZeroTensor,
                               DispatchKey::ZeroTensor);
    for (const char *name : {"aten::dot", "aten::vdot"})
      registerAround<DotOfZeros>(findOp({name, ""}),
                                 DispatchKey::Functionalize);
    return true;
  }();
}

void registerForBits() {
  registerViewsWithBits();
  SilentRegistration silence;
  for (const OperatorHandle &op : atenOps()) {
    if (isComposite(op))
      continue;
    for (DispatchKey key : {DispatchKey::Conjugate, DispatchKey::Negative})
      if (!op.hasKernelForDispatchKey(key)) // existing kernels fall through
        registerAround<PassBy>(op, key, key);
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
class TurnBit final : public KernelAround {
public:
  TurnBit(bool isConj, c10::SafeKernelFunction previous)
      : KernelAround(std::move(previous)), isConj(isConj) {}

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
    if (self._is_zerotensor())
      markZero(view);
  }

private:
  bool isConj;
};

/// Wraps `_efficientzerotensor`.
class ZeroTensor final : public KernelAround {
public:
  using KernelAround::KernelAround;

  void operator()(const OperatorHandle &op, c10::DispatchKeySet keys,
                  Stack *stack) {
    previous.callBoxed(op, keys, stack);
    const Tensor &zero = stack->back().toTensor();
    if (!isLazyWrapper(zero))
      return;
    registerForZeros();
    markZero(zero);
  }
};

} // namespace

void torch_ltc::registerMathBits() {
  SilentRegistration silence;
  for (auto [name, isConj] :
       {std::pair("aten::_conj", true), std::pair("aten::_neg_view", false)})
    registerAround<TurnBit>(findOp({name, ""}), DispatchKey::Functionalize,
                            isConj);
  registerAround<ZeroTensor>(findOp({"aten::_efficientzerotensor", ""}),
                             DispatchKey::Lazy);
}
