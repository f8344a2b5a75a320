//===- inference_composites.cpp - Composite ops in inference_mode ---------===//
//
// Ops that PyTorch defines by other ops are decomposed at the autograd keys. In
// inference_mode these keys are off, and functionalization's fallback runs the
// whole op below functionalization (torch 2.13). There, a write through a view
// has no effect, a view has no base, and an argument that is returned unchanged
// isn't the user's tensor. So these ops are decomposed at the Functionalize key
// as well, by this backend's kernel at key AutogradLazy if there is one. An op
// that functionalization derives from a view (for example, `expand_copy` from
// `expand`) can then be distinguished from a user's call of the same op.
//
//===----------------------------------------------------------------------===//

#include "eager_semantics/registration.h"
#include "graph/inference_tensors.h"
#include "graph/live_tensors.h"
#include "tracing/boxed_kernels.h"
#include "tracing/wrapped_value.h"
#include "tracing/writing_call.h"

#include <ATen/core/stack.h>

using namespace torch_ltc;
using c10::DispatchKey;
using c10::OperatorHandle;
using torch::jit::Stack;

namespace {

/// A kernel at key Functionalize that runs another kernel of the op, which
/// decomposes it, in inference_mode.
class TakenApart final : public KernelAround {
public:
  TakenApart(DispatchKey definition, c10::SafeKernelFunction previous)
      : KernelAround(std::move(previous)), definition(definition) {}

  void operator()(const OperatorHandle &op, c10::DispatchKeySet keys,
                  Stack *stack) {
    if (c10::InferenceMode::is_enabled() &&
        anyTensor(torch::jit::last(*stack, op.schema().arguments().size()),
                  isLazyWrapper))
      op.callBoxedForDispatchKey(definition, *stack);
    else
      previous.callBoxed(op, keys, stack);
  }

private:
  DispatchKey definition;
};

/// Wraps an op that writes operands and that has no kernel at ADInplaceOrView.
/// In inference_mode, functionalization (torch 2.13) gives a written normal
/// tensor the value of an inference tensor; no alias of such a tensor can be
/// made, so the value is replaced by that of a normal tensor.
class NormalWritten final : public KernelAround {
public:
  using KernelAround::KernelAround;

  void operator()(const OperatorHandle &op, c10::DispatchKeySet keys,
                  Stack *stack) {
    std::vector<at::Tensor> written;
    const auto &schema = op.schema().arguments();
    if (c10::InferenceMode::is_enabled())
      for (size_t i = 0; i < schema.size(); ++i) {
        const c10::IValue &argument =
            torch::jit::peek(*stack, i, schema.size());
        if (!schema[i].alias_info())
          continue;
        if (argument.isTensorList())
          for (const at::Tensor &tensor : argument.toTensorVector())
            note(tensor, written);
        else if (argument.isTensor())
          note(argument.toTensor(), written);
      }
    previous.callBoxed(op, keys, stack);
    c10::InferenceMode normal(false);
    for (const at::Tensor &tensor : written)
      if (!tensor.is_inference() && valueOf(tensor).is_inference())
        setValue(tensor, withValueOf(valueOf(tensor)));
  }

private:
  static void note(const at::Tensor &tensor, std::vector<at::Tensor> &written) {
    if (isLazyWrapper(tensor))
      written.push_back(tensor);
  }
};

/// Returns the dispatch key of the decomposition if the op must be decomposed
/// in inference_mode.
std::optional<DispatchKey> definitionOf(const OperatorHandle &op) {
  if (op.hasKernelForDispatchKey(DispatchKey::Functionalize))
    return std::nullopt; // that kernel supports views
  if (op.hasKernelForDispatchKey(DispatchKey::CompositeImplicitAutograd) &&
      !op.hasKernelForDispatchKey(DispatchKey::Lazy))
    return op.hasKernelForDispatchKey(DispatchKey::AutogradLazy)
               ? DispatchKey::AutogradLazy
               : DispatchKey::CompositeImplicitAutograd;
  constexpr auto byViews = DispatchKey::CompositeExplicitAutogradNonFunctional;
  if (op.hasKernelForDispatchKey(byViews) &&
      isViewOrInverse(op, findOpRecord(textOf(op.operator_name()))))
    return byViews;
  return std::nullopt;
}

} // namespace

void torch_ltc::registerInferenceComposites(const AtenOps &ops) {
  for (const OperatorHandle &op : ops)
    if (std::optional<DispatchKey> definition = definitionOf(op))
      registerAround<TakenApart>(op, DispatchKey::Functionalize, *definition);
  // Functionalization's kernels of these ops are wrong, or raise (autograd.cpp,
  // storage_views.cpp).
  SilentRegistration silence;
  for (auto [name, overload] :
       {std::pair("aten::polygamma_", ""),
        std::pair("aten::_native_batch_norm_legit", "out"),
        std::pair("aten::set_", "source_Storage"),
        std::pair("aten::set_", "source_Storage_storage_offset"),
        std::pair("aten::set_", "source_Tensor_storage_offset")})
    registerAround<TakenApart>(findOp({name, overload}),
                               DispatchKey::Functionalize,
                               DispatchKey::AutogradLazy);
  for (const char *name :
       {"aten::_native_batch_norm_legit", "aten::_batch_norm_with_update",
        "aten::_fused_moving_avg_obs_fq_helper", "aten::rrelu_with_noise",
        "aten::rrelu_with_noise_",
        "aten::_amp_foreach_non_finite_check_and_unscale_",
        "aten::_amp_update_scale_"})
    registerAround<NormalWritten>(findOp({name, ""}),
                                  DispatchKey::Functionalize);
}
