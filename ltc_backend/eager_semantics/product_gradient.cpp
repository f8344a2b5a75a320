//===- product_gradient.cpp - The gradient of `prod` ----------------------===//
//
// Eager counts the zeros of the operand. Without a zero, the gradient is the
// product divided by the operand; with one zero, the product of all other
// elements; with several, zero. For a tensor with a functional wrapper, torch
// can't count zeros and always computes the product of all other elements. That
// differs from eager's gradient if an element is NaN or infinite, or if a
// product overflows. So the hook here computes these forms as well, and selects
// one.
//
//===----------------------------------------------------------------------===//

#include "eager_semantics/registration.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/generated/Functions.h>
#include <torch/csrc/autograd/variable.h>

using namespace torch_ltc;
using at::Tensor;
using torch::autograd::Node;
using torch::autograd::variable_list;
using torch::autograd::generated::ProdBackward0;
using torch::autograd::generated::ProdBackward1;

namespace {

/// A hook on `ProdBackward0` (all elements) and `ProdBackward1` (along a dim).
/// Replaces their gradient, computed from the product of all other elements, by
/// the selected form.
class SelectedGradient final : public torch::autograd::FunctionPostHook {
public:
  explicit SelectedGradient(Node *node) : node(node) {}

  variable_list operator()(const variable_list &outputs,
                           const variable_list &inputs) override {
    const Tensor &ofOthers = outputs[0], &grad = inputs[0];
    if (!ofOthers.defined() || !grad.defined())
      return outputs;
    if (auto *all = dynamic_cast<ProdBackward0 *>(node))
      return {selected(ofOthers, grad, all->self_.unpack(),
                       all->result_.unpack(node->getptr()),
                       /*isOfAll=*/true)};
    auto *along = static_cast<ProdBackward1 *>(node);
    Tensor self = along->self_.unpack();
    Tensor result = along->result_.unpack(node->getptr());
    if (self.dim() == 0 || along->keepdim)
      return {selected(ofOthers, grad, self, result, /*isOfAll=*/false)};
    return {selected(ofOthers, grad.unsqueeze(along->dim), self,
                     result.unsqueeze(along->dim), /*isOfAll=*/false)};
  }

  /// Does nothing, so that compiled autograd traces torch's own node without
  /// this hook: the gradient only differs in the cases that are listed above.
  void
  compiled_args(torch::dynamo::autograd::CompiledNodeArgs &) const override {}

private:
  static Tensor selected(const Tensor &ofOthers, const Tensor &grad,
                         const Tensor &self, const Tensor &result,
                         bool isOfAll) {
    if (self.dim() == 0)
      return ofOthers;
    Tensor operand = self.to(grad.scalar_type());
    Tensor zeros = operand == 0;
    // Divides by 1 where the quotient isn't selected: a second derivative
    // multiplies that quotient by zero, so it must be finite.
    Tensor divisor = at::where(zeros, at::ones({}, operand.options()), operand);
    Tensor quotient = (grad * (result / divisor).conj()).to(ofOthers.dtype());
    Tensor withZeros = ofOthers;
    if (isOfAll && !at::GradMode::is_enabled())
      withZeros = at::where(zeros.sum() > 1, at::zeros({}, ofOthers.options()),
                            ofOthers);
    return at::where(zeros.any(), withZeros, quotient);
  }

  Node *node; // owns this hook
};

class Product final : public c10::OperatorKernel {
public:
  explicit Product(c10::SafeKernelFunction previous)
      : previous(std::move(previous)) {}

  void operator()(const c10::OperatorHandle &op, c10::DispatchKeySet keys,
                  torch::jit::Stack *stack) {
    previous.callBoxed(op, keys, stack);
    const auto &node = stack->back().toTensor().grad_fn();
    if (node)
      node->add_post_hook(std::make_unique<SelectedGradient>(node.get()));
  }

private:
  c10::SafeKernelFunction previous;
};

} // namespace

void torch_ltc::registerProducts() {
  for (const char *overload : {"", "dim_int"})
    registerAround<Product>(findOp({"aten::prod", overload}),
                            c10::DispatchKey::AutogradLazy);
}
