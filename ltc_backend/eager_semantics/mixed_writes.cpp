//===- mixed_writes.cpp - Writes between devices and without gradients ----===//
//
// Wraps in-place ops whose operands differ from the written tensor: they are on
// another device, or have gradients that the written tensor can't have.
//
//===----------------------------------------------------------------------===//

#include "eager_semantics/memory_overlap.h"
#include "eager_semantics/registration.h"
#include "tracing/boxed_kernels.h"

#include <ATen/FunctionalTensorWrapper.h>
#include <ATen/core/stack.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/functions/utils.h>

#include <algorithm>

using namespace torch_ltc;

namespace {

/// Wraps `copy_`. Functionalization (torch 2.13) fails an assertion if a lazy
/// tensor is written into a CPU tensor, so the lazy tensor is moved to the CPU
/// first, by a differentiable op.
class CopyElsewhere final : public KernelAround {
public:
  using KernelAround::KernelAround;

  void operator()(const c10::OperatorHandle &op, c10::DispatchKeySet keys,
                  torch::jit::Stack *stack) {
    const at::Tensor &self = torch::jit::peek(*stack, 0, 3).toTensor();
    c10::IValue &source = torch::jit::peek(*stack, 1, 3);
    if (!self.defined() || self.device().is_lazy() ||
        !source.toTensor().device().is_lazy())
      return previous.callBoxed(op, keys, stack);
    source = source.toTensor().to(self.device());
    op.callBoxed(stack);
  }
};

/// Whether `self` is a view with a dtype that has no gradients.
bool isViewWithoutGradients(const at::Tensor &self) {
  return self.is_view() &&
         !torch::autograd::isDifferentiableType(self.scalar_type());
}

/// Copies tensor by tensor if the lists mix tensors with a functional wrapper
/// and tensors without one (for example, CPU tensors), because
/// functionalization (torch 2.13) then fails an assertion; and if a target is a
/// view that has no gradients (see WithoutGradients). Before the copy, checks
/// the tensors for overlaps as eager does.
class ForeachCopy final : public KernelAround {
public:
  using KernelAround::KernelAround;

  void operator()(const c10::OperatorHandle &op, c10::DispatchKeySet keys,
                  torch::jit::Stack *stack) {
    auto arguments = torch::jit::last(*stack, 3);
    std::vector<at::Tensor> targets = arguments[0].toTensorVector();
    std::vector<at::Tensor> sources = arguments[1].toTensorVector();
    for (size_t i = 0; i < std::min(targets.size(), sources.size()); ++i)
      if (targets[i].device().is_lazy()) {
        checkWrittenOnce(targets[i], "aten::_foreach_copy_");
        checkRead(targets[i], sources[i], Overlap::Part,
                  "aten::_foreach_copy_");
      }
    if (targets.size() != sources.size() ||
        (std::all_of(targets.begin(), targets.end(), isWrapped) &&
         std::all_of(sources.begin(), sources.end(), isWrapped) &&
         std::none_of(targets.begin(), targets.end(), isViewWithoutGradients)))
      return previous.callBoxed(op, keys, stack);
    for (size_t i = 0; i < targets.size(); ++i)
      targets[i].copy_(sources[i], arguments[2].toBool());
    torch::jit::drop(*stack, 3);
  }

private:
  static bool isWrapped(const at::Tensor &tensor) {
    return at::functionalization::impl::isFunctionalTensor(tensor);
  }
};

/// Wraps in-place ops whose operands may have gradients while `self` can't, to
/// detach the operands if `self` is a view. Otherwise the view would become
/// part of the operands' graph, through which no gradient can flow: on the CPU
/// that has no effect, but on device `lazy` torch (2.13) replays the view on
/// its base, and rejects a base with such a history.
class WithoutGradients final : public KernelAround {
public:
  using KernelAround::KernelAround;

  void operator()(const c10::OperatorHandle &op, c10::DispatchKeySet keys,
                  torch::jit::Stack *stack) {
    size_t numArguments = op.schema().arguments().size();
    if (isViewWithoutGradients(
            torch::jit::peek(*stack, 0, numArguments).toTensor()))
      for (size_t i = 1; i < numArguments; ++i) {
        c10::IValue &operand = torch::jit::peek(*stack, i, numArguments);
        if (operand.isTensor() && operand.toTensor().requires_grad())
          operand = operand.toTensor().detach();
      }
    previous.callBoxed(op, keys, stack);
  }
};

} // namespace

void torch_ltc::registerMixedWrites() {
  constexpr auto autograd = c10::DispatchKey::AutogradLazy;
  for (auto [name, overload] :
       {std::pair("aten::eq_", "Tensor"), std::pair("aten::ne_", "Tensor"),
        std::pair("aten::lt_", "Tensor"), std::pair("aten::le_", "Tensor"),
        std::pair("aten::gt_", "Tensor"), std::pair("aten::ge_", "Tensor"),
        std::pair("aten::fill_", "Tensor"),
        std::pair("aten::masked_fill_", "Tensor"),
        std::pair("aten::index_fill_", "int_Tensor"),
        std::pair("aten::index_put_", ""),
        std::pair("aten::bernoulli_", "Tensor")})
    registerAround<WithoutGradients>(findOp({name, overload}), autograd);
  registerAroundInAnyMode<CopyElsewhere>(findOp({"aten::copy_", ""}));
  registerAroundInAnyMode<ForeachCopy>(findOp({"aten::_foreach_copy_", ""}));
}
