//===- value_dependent_gradients.cpp - Gradients that read values ---------===//
//
// For a tensor with a functional wrapper, torch computes some gradients by
// formulas that avoid reading values. If values are NaN or infinite, or
// overflow, the results differ from those of the formulas for CPU tensors; so
// do the strides for operands that aren't row-major. Hooks on the autograd
// nodes compute the results and strides of the latter:
//
// - `prod`: eager counts the zeros of the operand. Without a zero, the gradient
//   is the product divided by the operand; with one zero, the product of all
//   other elements; with several, zero. With a wrapper, torch always computes
//   the product of all other elements. The hook computes these forms as well,
//   and selects one. The strides are those of the form without a zero.
// - `cumprod`, if the gradient is differentiated (`create_graph`, torch.func):
//   as for `prod`, eager divides by the operand if it has no zero.
// - `max` and `min` of all elements: eager divides the gradient among the
//   extreme elements, and the others get 0. With a wrapper, torch multiplies by
//   0 instead of selecting 0, and the product with NaN or infinity is NaN.
// - `masked_select`: eager writes the gradient to a tensor with the strides of
//   the operand. With a wrapper, torch creates a row-major tensor.
// - `linalg.eig` and `linalg.eigh`: eager raises an error if the loss depends
//   on the phase of complex eigenvectors. With a wrapper, torch doesn't check
//   this.
//
// Inside nested transforms of torch.func and for subclasses with a
// `__torch_dispatch__`, eager itself avoids reading values, and the hooks do
// nothing.
//
//===----------------------------------------------------------------------===//

#include "eager_semantics/registration.h"
#include "tracing/boxed_kernels.h"
#include "tracing/checked_zero.h"
#include "tracing/writing_call.h"

#include <ATen/Functions.h>
#include <ATen/SavedTensorHooks.h>
#include <ATen/TensorOperators.h>
#include <ATen/TensorSubclassLikeUtils.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/generated/Functions.h>
#include <torch/csrc/autograd/variable.h>

using namespace torch_ltc;
using at::Tensor;
using torch::autograd::Node;
using torch::autograd::variable_list;
using torch::autograd::generated::CumprodBackward0;
using torch::autograd::generated::LinalgEigBackward0;
using torch::autograd::generated::LinalgEighBackward0;
using torch::autograd::generated::MaskedSelectBackward0;
using torch::autograd::generated::MaxBackward1;
using torch::autograd::generated::MinBackward1;
using torch::autograd::generated::ProdBackward0;
using torch::autograd::generated::ProdBackward1;

namespace {

/// Whether eager computes the gradient of such a tensor by the formula that
/// avoids reading values: torch's `isTensorSubclassLike` for a tensor without a
/// functional wrapper. A tensor of a transform that has ended is one until an
/// op returns its value, so it must be the tensor that torch's formula passes.
bool isSubclassLike(const Tensor &tensor) {
  return c10::impl::dispatch_mode_enabled() ||
         tensor.key_set().has_any(
             at::kTensorSubclassLike -
             c10::DispatchKeySet(c10::DispatchKey::Functionalize));
}

/// A hook on a node of autograd. Replaces the gradient of the node's operand.
class GradientHook : public torch::autograd::FunctionPostHook {
public:
  explicit GradientHook(Node *node) : node(node) {}

  variable_list operator()(const variable_list &outputs,
                           const variable_list &inputs) final {
    // The gradient of the last result, which is the only one of most ops.
    const Tensor &grad = inputs.back();
    if (!outputs[0].defined() || !grad.defined())
      return outputs;
    return {replaced(outputs[0], grad)};
  }

  /// Does nothing, so that compiled autograd traces torch's own node without
  /// this hook: the gradient only differs in the cases that are listed above.
  void
  compiled_args(torch::dynamo::autograd::CompiledNodeArgs &) const override {}

protected:
  Node *node; // owns this hook

private:
  /// Returns the operand's gradient as eager computes it. `computed`: the
  /// operand's gradient by torch's formula for tensors with a wrapper. `grad`:
  /// the gradient of the node's last result.
  virtual Tensor replaced(const Tensor &computed, const Tensor &grad) = 0;
};

/// A hook on `ProdBackward0` (all elements) and `ProdBackward1` (along a dim).
class ProductGradient final : public GradientHook {
  using GradientHook::GradientHook;

  Tensor replaced(const Tensor &ofOthers, const Tensor &grad) override {
    if (auto *all = dynamic_cast<ProdBackward0 *>(node))
      return selected(ofOthers, grad, all->self_.unpack(),
                      all->result_.unpack(node->getptr()),
                      /*isOfAll=*/true);
    auto *along = static_cast<ProdBackward1 *>(node);
    Tensor self = along->self_.unpack();
    Tensor result = along->result_.unpack(node->getptr());
    if (self.dim() == 0 || along->keepdim)
      return selected(ofOthers, grad, self, result, /*isOfAll=*/false);
    return selected(ofOthers, grad.unsqueeze(along->dim), self,
                    result.unsqueeze(along->dim), /*isOfAll=*/false);
  }

  static Tensor selected(const Tensor &ofOthers, const Tensor &grad,
                         const Tensor &self, const Tensor &result,
                         bool isOfAll) {
    Tensor operand = self.to(grad.scalar_type());
    if (self.dim() == 0 || isSubclassLike(operand))
      return ofOthers;
    Tensor zeros = operand == 0;
    // Divides by 1 where the quotient isn't selected: a second derivative
    // multiplies that quotient by zero, so it must be finite.
    Tensor divisor = at::where(zeros, at::ones({}, operand.options()), operand);
    Tensor quotient = (grad * (result / divisor).conj()).to(ofOthers.dtype());
    Tensor withZeros = ofOthers;
    if (isOfAll && !at::GradMode::is_enabled())
      withZeros = at::where(zeros.sum() > 1, at::zeros({}, ofOthers.options()),
                            ofOthers);
    return at::where(zeros.any().logical_not(), quotient, withZeros);
  }
};

/// A hook on `CumprodBackward0`.
class CumulativeGradient final : public GradientHook {
  using GradientHook::GradientHook;

  Tensor replaced(const Tensor &ofOthers, const Tensor &grad) override {
    auto *backward = static_cast<CumprodBackward0 *>(node);
    Tensor self = backward->self_.unpack();
    Tensor operand = self.to(grad.scalar_type());
    if (!at::GradMode::is_enabled() || self.dim() == 0 ||
        isSubclassLike(operand) || isSubclassLike(grad))
      return ofOthers;
    Tensor zeros = operand == 0;
    Tensor divisor = at::where(zeros, at::ones({}, operand.options()), operand);
    Tensor products = grad * backward->result_.unpack(node->getptr()).conj();
    int64_t dim = backward->dim;
    Tensor quotient =
        (products.flip(dim).cumsum(dim).flip(dim) / divisor.conj())
            .to(ofOthers.dtype());
    return at::where(zeros.any().logical_not(), quotient, ofOthers);
  }
};

/// A hook on `MaxBackward1` and `MinBackward1` (of all elements).
template <typename Backward>
class ExtremumGradient final : public GradientHook {
  using GradientHook::GradientHook;

  Tensor replaced(const Tensor &byProducts, const Tensor &grad) override {
    auto *backward = static_cast<Backward *>(node);
    Tensor self = backward->self_.unpack();
    Tensor result = backward->result_.unpack(node->getptr());
    if (isSubclassLike(self) || isSubclassLike(result) || isSubclassLike(grad))
      return byProducts;
    Tensor isExtreme =
        (self == result).logical_or(self.isnan().logical_and(result.isnan()));
    return at::zeros(self.sizes(), grad.options())
        .masked_fill(isExtreme, grad / isExtreme.sum());
  }
};

/// A hook on `MaskedSelectBackward0`.
class SelectionGradient final : public GradientHook {
  using GradientHook::GradientHook;

  Tensor replaced(const Tensor &computed, const Tensor &) override {
    auto *backward = static_cast<MaskedSelectBackward0 *>(node);
    Tensor self = backward->self_.unpack();
    if (!isLazyWrapper(computed) || !isLazyWrapper(self) ||
        self.is_contiguous() || self.sizes() != computed.sizes())
      return computed;
    return at::empty_like(self, computed.options()).copy_(computed);
  }
};

/// A hook on `LinalgEigBackward0` and `LinalgEighBackward0`.
template <typename Backward>
class EigenvectorGradient final : public GradientHook {
  using GradientHook::GradientHook;

  Tensor replaced(const Tensor &computed, const Tensor &grad) override {
    constexpr bool isHermitian = std::is_same_v<Backward, LinalgEighBackward0>;
    auto *backward = static_cast<Backward *>(node);
    Tensor vectors = backward->eigenvectors_.unpack(node->getptr());
    if (!vectors.is_complex())
      return computed;
    Tensor phases =
        at::imag(at::matmul(vectors.mH(), grad).diagonal(/*offset=*/0, -2, -1));
    if (isSubclassLike(phases))
      return computed;
    static const std::string message =
        std::string(isHermitian ? "linalg_eigh_backward"
                                : "linalg_eig_backward") +
        ": The eigenvectors in the complex case are specified up to "
        "multiplication by e^{i phi}. The specified loss function depends on "
        "this quantity, so it is ill-defined.";
    Tensor checked =
        computed + checkedZero(phases.abs() <= 1e-2, message.c_str());
    // The gradient of a real operand is the real part of a complex tensor.
    return checked.strides() == computed.strides()
               ? checked
               : at::empty_strided(computed.sizes(), computed.strides(),
                                   computed.options())
                     .copy_(checked);
  }
};

/// Wraps `diagonal_scatter`. With a wrapper, torch's gradients of `linalg.eig`
/// and `linalg.eigh` scatter the real gradient of eigenvalues into a complex
/// matrix, and the derivative of that op is complex (torch 2.13).
class RealIntoComplex final : public KernelAround {
public:
  using KernelAround::KernelAround;

  void operator()(const c10::OperatorHandle &op, c10::DispatchKeySet keys,
                  torch::jit::Stack *stack) {
    auto arguments = torch::jit::last(*stack, op.schema().arguments().size());
    const Tensor &self = arguments[0].toTensor();
    const Tensor &source = arguments[1].toTensor();
    if (self.is_complex() && source.requires_grad())
      torch::jit::peek(*stack, 1, arguments.size()) =
          source.to(self.scalar_type());
    previous.callBoxed(op, keys, stack);
  }
};

/// Adds a hook to the node of each result.
template <typename Hook> class WithHook final : public KernelAround {
public:
  using KernelAround::KernelAround;

  void operator()(const c10::OperatorHandle &op, c10::DispatchKeySet keys,
                  torch::jit::Stack *stack) {
    previous.callBoxed(op, keys, stack);
    const Tensor &result = stack->back().toTensor();
    if (!result.device().is_lazy())
      return;
    const auto &node = result.grad_fn();
    // The hook unpacks the node's saved tensors again, which the user's hooks
    // may not allow: those of checkpoints unpack a tensor only once.
    if (node && !at::SavedTensorDefaultHooks::get_hooks())
      node->add_post_hook(std::make_unique<Hook>(node.get()));
  }
};

/// Inside torch.func's `grad` and `vjp`, tensors of a device that functorch
/// doesn't list, as lazy, have key AutogradOther (torch 2.13).
template <typename Hook> void addHook(const c10::OperatorName &name) {
  for (c10::DispatchKey key :
       {c10::DispatchKey::AutogradLazy, c10::DispatchKey::AutogradOther})
    registerAround<WithHook<Hook>>(findOp(name), key);
}

} // namespace

void torch_ltc::registerValueDependentGradients() {
  addHook<ProductGradient>({"aten::prod", ""});
  addHook<ProductGradient>({"aten::prod", "dim_int"});
  addHook<CumulativeGradient>({"aten::cumprod", ""});
  addHook<ExtremumGradient<MaxBackward1>>({"aten::max", ""});
  addHook<ExtremumGradient<MinBackward1>>({"aten::min", ""});
  addHook<SelectionGradient>({"aten::masked_select", ""});
  addHook<EigenvectorGradient<LinalgEigBackward0>>({"aten::linalg_eig", ""});
  addHook<EigenvectorGradient<LinalgEighBackward0>>({"aten::_linalg_eigh", ""});
  registerAround<RealIntoComplex>(findOp({"aten::diagonal_scatter", ""}),
                                  c10::DispatchKey::AutogradLazy);
}
