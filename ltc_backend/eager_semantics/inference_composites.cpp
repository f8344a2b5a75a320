//===- inference_composites.cpp - Composite ops in inference_mode ---------===//
//
// Ops that PyTorch defines by other ops are decomposed at the autograd keys. In
// inference_mode these keys are off, and functionalization's fallback runs the
// whole op below functionalization (torch 2.13). There, a write through a view
// has no effect, a view has no base, and an argument that is returned unchanged
// isn't the user's tensor. So these ops are decomposed at the Functionalize key
// as well. An op that functionalization derives from a view (for example,
// `expand_copy` from `expand`) can then be distinguished from a user's call of
// the same op.
//
//===----------------------------------------------------------------------===//

#include "eager_semantics/registration.h"
#include "graph/inference_tensors.h"
#include "tracing/boxed_kernels.h"
#include "tracing/writing_call.h"

#include <ATen/core/stack.h>

using namespace torch_ltc;
using c10::DispatchKey;
using c10::OperatorHandle;
using torch::jit::Stack;

namespace {

/// A kernel at key Functionalize that runs torch's decomposition of an op in
/// inference_mode.
class TakenApart final : public KernelAround {
public:
  TakenApart(DispatchKey composite, c10::SafeKernelFunction previous)
      : KernelAround(std::move(previous)), composite(composite) {}

  void operator()(const OperatorHandle &op, c10::DispatchKeySet keys,
                  Stack *stack) {
    if (c10::InferenceMode::is_enabled() &&
        anyTensor(torch::jit::last(*stack, op.schema().arguments().size()),
                  isLazyWrapper))
      op.callBoxedForDispatchKey(composite, *stack);
    else
      previous.callBoxed(op, keys, stack);
  }

private:
  DispatchKey composite;
};

/// Returns the dispatch key of torch's decomposition if the op must be
/// decomposed in inference_mode.
std::optional<DispatchKey> definitionOf(const OperatorHandle &op) {
  if (op.hasKernelForDispatchKey(DispatchKey::Functionalize))
    return std::nullopt; // that kernel supports views
  if (op.hasKernelForDispatchKey(DispatchKey::CompositeImplicitAutograd) &&
      !op.hasKernelForDispatchKey(DispatchKey::Lazy))
    return DispatchKey::CompositeImplicitAutograd;
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
}
