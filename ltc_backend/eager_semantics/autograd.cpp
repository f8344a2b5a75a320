//===- autograd.cpp - Kernels that replace torch's above autograd ---------===//

#include "eager_semantics/in_place.h"
#include "eager_semantics/memory_overlap.h"
#include "eager_semantics/registration.h"
#include "graph/torch_dispatch.h"
#include "shape/strides.h"
#include "tracing/boxed_kernels.h"
#include "tracing/wrapped_value.h"

#include <ATen/Context.h>
#include <ATen/FunctionalTensorWrapper.h>
#include <ATen/Functions.h>
#include <ATen/native/Resize.h>
#include <ATen/ops/_native_batch_norm_legit.h>
#include <ATen/ops/batch_norm_native.h>
#include <ATen/ops/dropout_native.h>
#include <ATen/ops/group_norm_native.h>
#include <ATen/ops/max_pool1d_native.h>
#include <torch/csrc/autograd/VariableTypeUtils.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/functions/utils.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>

using namespace torch_ltc;
using torch::autograd::variable_list;

namespace {

/// Raises the errors of torch's composite for an operand, because the ops that
/// `batchNorm` calls don't check it.
void checkPerChannel(const char *name, const std::optional<at::Tensor> &values,
                     int64_t channels, bool isNeeded) {
  bool isGiven = values && values->defined();
  TORCH_CHECK(isGiven || !isNeeded, name,
              " must be defined in evaluation mode");
  TORCH_CHECK(!isGiven || values->numel() == channels, name, " should contain ",
              channels, " elements not ", values->numel());
}

/// Raises native_batch_norm's error for statistics that require a gradient,
/// because the `_legit` op's error has the name of that op.
void checkStatistics(const at::Tensor &mean, const at::Tensor &variance) {
  using torch::autograd::check_no_requires_grad;
  check_no_requires_grad(mean, "running_mean", "native_batch_norm");
  check_no_requires_grad(variance, "running_var", "native_batch_norm");
}

/// The kernel of `dropout`. torch's composite calls native_dropout on device
/// lazy, which accepts complex numbers; on the CPU, it draws a mask of the
/// input's dtype, which can't be complex (torch 2.13).
at::Tensor dropout(const at::Tensor &input, double p, bool train) {
  bool draws = train && p > 0 && p < 1 && input.sym_numel() != 0;
  TORCH_CHECK_NOT_IMPLEMENTED(!draws || !input.is_complex(),
                              "\"bernoulli_scalar_cpu_\" not implemented for '",
                              input.scalar_type(), "'");
  return at::native::dropout(input, p, train);
}

/// Wraps functorch's kernel of `dropout`, which transforms of torch.func call.
/// On device lazy it calls native_dropout, whose batching rule draws in another
/// order than the kernel does on the CPU, and crashes in nested calls of `vmap`
/// with randomness "same" (torch 2.13).
class TransformedDropout final : public KernelAround {
public:
  using KernelAround::KernelAround;

  void operator()(const c10::OperatorHandle &op, c10::DispatchKeySet keys,
                  torch::jit::Stack *stack) {
    auto arguments = torch::jit::last(*stack, 3);
    at::Tensor input = arguments[0].toTensor();
    double p = arguments[1].toDouble();
    bool draws = arguments[2].toBool() && p > 0 && p < 1;
    if (!input.device().is_lazy() || !draws || input.sym_numel() == 0)
      return previous.callBoxed(op, keys, stack);
    torch::jit::drop(*stack, 3);
    at::Tensor noise = at::bernoulli(
        at::empty({}, input.options()).expand_symint(input.sym_sizes()), 1 - p);
    stack->emplace_back(at::mul(input, noise.div_(1 - p)));
  }
};

/// The kernel of `batch_norm`. torch's composite calls native_batch_norm, whose
/// schema doesn't declare that it writes the running statistics (torch 2.13),
/// so functionalization would lose the update. The schema of the `_legit` op
/// declares the write.
at::Tensor batchNorm(const at::Tensor &input,
                     const std::optional<at::Tensor> &weight,
                     const std::optional<at::Tensor> &bias,
                     const std::optional<at::Tensor> &runningMean,
                     const std::optional<at::Tensor> &runningVar, bool training,
                     double momentum, double eps, bool cudnn) {
  if (hasSymbolicSizes(input))
    return at::native::batch_norm(input, weight, bias, runningMean, runningVar,
                                  training, momentum, eps, cudnn);
  bool hasStatistics = runningMean && runningMean->defined() && runningVar &&
                       runningVar->defined();
  if (input.numel() == 0) { // may have any rank; statistics aren't updated
    TORCH_CHECK(hasStatistics || training,
                "Expected running_mean and running_var to be defined when "
                "training=False");
    at::Tensor out = input.clone();
    if (weight && weight->defined())
      out = at::mul(out, weight->select(0, 0));
    if (bias && bias->defined())
      out = at::add(out, bias->select(0, 0));
    return out;
  }
  int64_t channels = input.sizes().at(1);
  checkPerChannel("running_mean", runningMean, channels, !training);
  checkPerChannel("running_var", runningVar, channels, !training);
  checkPerChannel("weight", weight, channels, false);
  checkPerChannel("bias", bias, channels, false);
  if (!training) // only reads the statistics
    return std::get<0>(at::native_batch_norm(input, weight, bias, runningMean,
                                             runningVar, false, momentum, eps));
  if (!hasStatistics)
    return std::get<0>(
        at::_native_batch_norm_legit(input, weight, bias, true, momentum, eps));
  at::Tensor mean = *runningMean, variance = *runningVar;
  checkStatistics(mean, variance);
  return std::get<0>(at::_native_batch_norm_legit(
      input, weight, bias, mean, variance, true, momentum, eps));
}

/// Wraps `native_batch_norm`, for direct calls. Replaces a call that updates
/// running statistics by a call of the `_legit` op, as `batchNorm` does.
class NativeBatchNorm final : public KernelAround {
public:
  using KernelAround::KernelAround;

  void operator()(const c10::OperatorHandle &op, c10::DispatchKeySet keys,
                  torch::jit::Stack *stack) {
    constexpr size_t numArguments = 8, kMean = 3, kVariance = 4, kTraining = 5;
    auto arguments = torch::jit::last(*stack, numArguments);
    auto isDefined = [&](size_t i) {
      return arguments[i].isTensor() && arguments[i].toTensor().defined();
    };
    if (!arguments[0].toTensor().device().is_lazy() ||
        !arguments[kTraining].toBool() || !isDefined(kMean) ||
        !isDefined(kVariance))
      return previous.callBoxed(op, keys, stack);
    checkStatistics(arguments[kMean].toTensor(),
                    arguments[kVariance].toTensor());
    static const c10::OperatorHandle legit =
        findOp({"aten::_native_batch_norm_legit", ""});
    legit.callBoxed(stack);
  }
};

/// The kernel of `max_pool1d`. torch's composite only calls a kernel without
/// indices for CPU tensors without gradient; that kernel supports no integers,
/// and its result isn't a view.
at::Tensor maxPool1d(const at::Tensor &self, at::IntArrayRef kernel,
                     at::IntArrayRef stride, at::IntArrayRef padding,
                     at::IntArrayRef dilation, bool ceil) {
  if (!c10::isFloatingType(self.scalar_type()) &&
      self.layout() == c10::kStrided && !hasSymbolicSizes(self))
    at::native::max_pool1d(
        at::zeros(self.sizes(), self.options().device(at::kCPU)), kernel,
        stride, padding, dilation, ceil); // raises eager's error
  std::optional<at::AutoDispatchBelowADInplaceOrView> withoutViews;
  if (!c10::InferenceMode::is_enabled() &&
      !(self.requires_grad() && at::GradMode::is_enabled()) &&
      !self._fw_grad(/*level=*/0).defined() && !hasTorchDispatch(self))
    withoutViews.emplace();
  return at::native::max_pool1d(self, kernel, stride, padding, dilation, ceil);
}

void copyOut(at::Tensor &out, const at::Tensor &result) {
  TORCH_CHECK(out.device() == result.device(),
              "Expected all tensors to be on the same device, but got out is "
              "on ",
              out.device(), ", different from other tensors on ",
              result.device());
  at::native::resize_output(out, result.sizes()); // warns as eager does
  out.copy_(result);
}

/// The kernel of `_native_batch_norm_legit.out`. torch's functionalization of
/// this variant reads the functional op's results in the wrong order, and
/// writes the batch's statistics into the output (torch 2.13).
std::tuple<at::Tensor &, at::Tensor &, at::Tensor &>
batchNormOut(const at::Tensor &input, const std::optional<at::Tensor> &weight,
             const std::optional<at::Tensor> &bias, at::Tensor &runningMean,
             at::Tensor &runningVar, bool training, double momentum, double eps,
             at::Tensor &out, at::Tensor &saveMean, at::Tensor &saveInvstd) {
  auto [result, mean, invstd] = at::_native_batch_norm_legit(
      input, weight, bias, runningMean, runningVar, training, momentum, eps);
  copyOut(out, result);
  copyOut(saveMean, mean);
  copyOut(saveInvstd, invstd);
  return {out, saveMean, saveInvstd};
}

/// The kernel of `polygamma_`, which has no functional form with which
/// functionalization could replace it (torch 2.13). If `self` requires a
/// gradient, the op reads a copy, because the gradient needs the old value of
/// `self`.
at::Tensor &polygammaInPlace(at::Tensor &self, int64_t n) {
  at::Tensor result =
      at::polygamma(n, self.requires_grad() ? self.clone() : self);
  checkCast(result.scalar_type(), self.scalar_type());
  return self.copy_(result);
}

/// A hook on the node of `native_group_norm`: gives the gradient of the operand
/// the operand's memory format, as eager does. torch's formula only preserves
/// the format of CPU tensors. That of a gradient that is differentiated
/// (`create_graph`) preserves none.
class FormatOfGradient final : public torch::autograd::FunctionPostHook {
public:
  explicit FormatOfGradient(at::MemoryFormat format) : format(format) {}

  variable_list operator()(const variable_list &outputs,
                           const variable_list &) final {
    variable_list results = outputs;
    if (results[0].defined() && !at::GradMode::is_enabled())
      results[0] = results[0].contiguous(format);
    return results;
  }

  /// Does nothing: compiled autograd traces torch's own node without this hook.
  void
  compiled_args(torch::dynamo::autograd::CompiledNodeArgs &) const override {}

private:
  at::MemoryFormat format;
};

/// The kernel of `group_norm`, which preserves the memory format. torch's
/// composite only preserves that of CPU tensors.
at::Tensor groupNorm(const at::Tensor &input, int64_t groups,
                     const std::optional<at::Tensor> &weight,
                     const std::optional<at::Tensor> &bias, double eps,
                     bool cudnn) {
  if (hasSymbolicSizes(input))
    return at::native::group_norm(input, groups, weight, bias, eps, cudnn);
  TORCH_CHECK(input.dim() >= 2,
              "Expected at least 2 dimensions for input "
              "tensor but received ",
              input.dim());
  int64_t batch = input.size(0), channels = input.size(1);
  TORCH_CHECK(groups > 0 && channels % groups == 0,
              "Expected number of channels in input to be divisible by "
              "num_groups, but got input of shape ",
              input.sizes(), " and num_groups=", groups);
  for (const auto &[name, factor] :
       {std::pair("weight", weight), std::pair("bias", bias)})
    TORCH_CHECK(!factor || !factor->defined() ||
                    (factor->dim() == 1 && factor->numel() == channels),
                "Expected ", name,
                " to be a vector of size equal to the number of channels in "
                "input, but got ",
                name, " of shape ", factor->sizes(), " and input of shape ",
                input.sizes());
  int64_t rest = c10::multiply_integers(input.sizes().slice(2));
  at::MemoryFormat format = input.suggest_memory_format();
  at::Tensor result =
      std::get<0>(at::native_group_norm(input.contiguous(format), weight, bias,
                                        batch, channels, rest, groups, eps));
  if (format != at::MemoryFormat::Contiguous && result.grad_fn())
    result.grad_fn()->add_post_hook(std::make_unique<FormatOfGradient>(format));
  return result;
}

/// The gradient of dropout. torch (2.13) has no forward-mode derivative of this
/// op, so if `grad` has a tangent, this kernel computes products, as eager's
/// composite on the CPU does.
class DropoutBackward final : public KernelAround {
public:
  using KernelAround::KernelAround;

  void operator()(const c10::OperatorHandle &op, c10::DispatchKeySet keys,
                  torch::jit::Stack *stack) {
    auto arguments = torch::jit::last(*stack, 3);
    const at::Tensor &grad = arguments[0].toTensor();
    if (!grad._fw_grad(/*level=*/0).defined())
      return previous.callBoxed(op, keys, stack);
    at::Tensor factor = at::mul(arguments[1].toTensor().to(grad.scalar_type()),
                                arguments[2].toScalar());
    at::Tensor result = at::mul(grad, factor);
    torch::jit::drop(*stack, 3);
    stack->emplace_back(std::move(result));
  }
};

/// Runs an `out=` variant as its functional op and a copy: torch's composite
/// treats functional wrappers like tensor subclasses, which it doesn't write
/// to, and so leaves `out` unchanged (torch 2.13).
class OutByCopy final : public c10::OperatorKernel {
public:
  explicit OutByCopy(const char *overload)
      : functional(c10::Dispatcher::singleton().findSchemaOrThrow(
            "aten::linalg_matrix_rank", overload)) {}

  void operator()(const c10::OperatorHandle &, c10::DispatchKeySet,
                  torch::jit::Stack *stack) {
    at::Tensor out = std::move(stack->back()).toTensor();
    stack->pop_back();
    functional.callBoxed(stack);
    at::Tensor result = std::move(stack->back()).toTensor();
    check(out, result);
    copyOut(out, result);
    stack->back() = std::move(out);
  }

private:
  /// Raises the errors of eager's kernel, with the same messages.
  static void check(const at::Tensor &out, const at::Tensor &result) {
    TORCH_CHECK(out.device() == result.device(),
                "torch.linalg.matrix_rank: Expected result and input tensors "
                "to be on the same device, but got result on ",
                out.device(), " and input on ", result.device());
    TORCH_CHECK(c10::canCast(result.scalar_type(), out.scalar_type()),
                "torch.linalg.matrix_rank: Expected result to be safely "
                "castable from ",
                result.scalar_type(), " dtype, but got result with dtype ",
                out.scalar_type());
  }

  c10::OperatorHandle functional;
};

} // namespace

void torch_ltc::registerAutogradKernels(torch::Library &library) {
  library.impl("batch_norm", TORCH_FN(batchNorm));
  library.impl("dropout", TORCH_FN(dropout));
  library.impl("group_norm", TORCH_FN(groupNorm));
  library.impl("max_pool1d", TORCH_FN(maxPool1d));
  library.impl("_native_batch_norm_legit.out", TORCH_FN(batchNormOut));
  library.impl("polygamma_", TORCH_FN(polygammaInPlace));
  registerStorageViews(library);
  for (auto [out, functional] :
       {std::pair("out", ""), std::pair("out_tol_tensor", "tol_tensor"),
        std::pair("atol_rtol_float_out", "atol_rtol_float"),
        std::pair("atol_rtol_tensor_out", "atol_rtol_tensor")})
    library.impl(("linalg_matrix_rank." + std::string(out)).c_str(),
                 torch::CppFunction::makeFromBoxedFunctor(
                     std::make_unique<OutByCopy>(functional)));
  constexpr auto key = c10::DispatchKey::AutogradLazy;
  registerAround<DropoutBackward>(findOp({"aten::native_dropout_backward", ""}),
                                  key);
  registerAroundInAnyMode<NativeBatchNorm>(
      findOp({"aten::native_batch_norm", ""}));
  SilentRegistration silence;
  registerAround<TransformedDropout>(
      findOp({"aten::dropout", ""}),
      c10::DispatchKey::FuncTorchDynamicLayerFrontMode);
}
