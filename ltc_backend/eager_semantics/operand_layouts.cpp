//===- operand_layouts.cpp - Ops that need another layout of an operand ---===//
//
// Eager's kernels of some functional ops first copy an operand to a certain
// layout, which decides the strides of the result and the order of the
// generated numbers. The copies are made at key Functionalize:
// functionalization replaces the in-place forms, which preserve the operand's
// layout, by the same functional ops, but below this key.
//
//===----------------------------------------------------------------------===//

#include "eager_semantics/registration.h"
#include "shape/strides.h"
#include "tracing/boxed_kernels.h"

#include <ATen/Context.h>
#include <ATen/core/stack.h>

using namespace torch_ltc;

namespace {

/// Wraps an op to convert its first tensor, if it is lazy, to a different
/// layout.
class WithSelf final : public KernelAround {
public:
  using Layout = at::Tensor (*)(const at::Tensor &);

  WithSelf(Layout layout, c10::SafeKernelFunction previous)
      : KernelAround(std::move(previous)), layout(layout) {}

  void operator()(const c10::OperatorHandle &op, c10::DispatchKeySet keys,
                  torch::jit::Stack *stack) {
    c10::IValue &self =
        torch::jit::peek(*stack, 0, op.schema().arguments().size());
    if (self.toTensor().device().is_lazy())
      self = layout(self.toTensor());
    previous.callBoxed(op, keys, stack);
  }

private:
  Layout layout;
};

/// Returns the operand of `torch.bernoulli(x, p)` in row-major order, like the
/// result. Below autograd, the same op implements `x.bernoulli_(p)`, which
/// preserves the memory order of x and generates numbers in this order.
at::Tensor rowMajor(const at::Tensor &self) {
  // `contiguous` doesn't change a tensor whose dims of size 1 have unusual
  // strides.
  return hasPackedStrides(self) ? self
                                : self.clone(at::MemoryFormat::Contiguous);
}

/// Returns the operand of index_put or a similar op as a tensor without gaps,
/// because eager writes into a dense copy. Below autograd, the same op
/// implements its in-place form, which preserves the strides of a view with
/// gaps.
at::Tensor dense(const at::Tensor &self) {
  return self.is_non_overlapping_and_dense()
             ? self
             : self.clone(at::MemoryFormat::Preserve);
}

/// Wraps `put` and `put_`, to report, as eager does, that the order of writes
/// is undefined.
class AlertedPut final : public KernelAround {
public:
  using KernelAround::KernelAround;

  void operator()(const c10::OperatorHandle &op, c10::DispatchKeySet keys,
                  torch::jit::Stack *stack) {
    if (!stack->back().toBool()) // accumulate
      at::globalContext().alertNotDeterministic("put_");
    previous.callBoxed(op, keys, stack);
  }
};

} // namespace

void torch_ltc::registerOperandLayouts() {
  constexpr auto key = c10::DispatchKey::Functionalize;
  for (auto [name, overload, layout] :
       {std::tuple("aten::bernoulli", "p", &rowMajor),
        std::tuple("aten::index_put", "", &dense),
        std::tuple("aten::_unsafe_index_put", "", &dense),
        std::tuple("aten::index_fill", "int_Scalar", &dense),
        std::tuple("aten::index_fill", "int_Tensor", &dense),
        std::tuple("aten::put", "", &dense),
        std::tuple("aten::_unsafe_masked_index_put_accumulate", "", &dense)})
    registerAround<WithSelf>(findOp({name, overload}), key, layout);
  SilentRegistration silence; // `put` gets a second kernel
  for (const char *name : {"aten::put", "aten::put_"})
    registerAround<AlertedPut>(findOp({name, ""}), key);
}
