//===- view_copies.cpp - User calls of `permute_copy` and similar ops -----===//
//
// Below functionalization, a view is traced as its `_copy` op, whose result
// reports the strides of the view. If a user calls the same op, it must return
// a row-major copy. So the kernels here, above autograd, replace a user's call
// by the view op and a clone, which also have the correct gradients. They are
// registered above functionalization as well: in inference_mode, and in calls
// of the `out=` variants, autograd's keys are off.
//
//===----------------------------------------------------------------------===//

#include "eager_semantics/registration.h"
#include "tracing/boxed_kernels.h"
#include "tracing/writing_call.h"

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include <cstring>

using namespace torch_ltc;
using c10::DispatchKey;
using c10::OperatorHandle;
using c10::OperatorName;
using torch::jit::Stack;

namespace {

at::Tensor rowMajorCopy(const at::Tensor &view) {
  return view.clone(at::MemoryFormat::Contiguous);
}

class ViewAndClone final : public KernelAround {
public:
  ViewAndClone(OperatorHandle view, c10::SafeKernelFunction previous)
      : KernelAround(std::move(previous)), view(std::move(view)) {}

  void operator()(const OperatorHandle &op, c10::DispatchKeySet keys,
                  Stack *stack) {
    auto arguments = torch::jit::last(*stack, op.schema().arguments().size());
    if (c10::impl::tls_is_dispatch_key_excluded(DispatchKey::Functionalize) ||
        !anyTensor(arguments, [](const at::Tensor &tensor) {
          return tensor.device().is_lazy();
        }))
      return previous.callBoxed(op, keys, stack);
    view.callBoxed(stack);
    c10::IValue result = std::move(stack->back());
    if (result.isTensor()) {
      stack->back() = rowMajorCopy(result.toTensor());
      return;
    }
    c10::List<at::Tensor> copies;
    for (const at::Tensor &tensor : result.toTensorVector())
      copies.push_back(rowMajorCopy(tensor));
    stack->back() = std::move(copies);
  }

private:
  OperatorHandle view;
};

/// Returns the view op whose copying variant is `copy`, which torch names after
/// it, if both have the same number of arguments. `view_copy` accepts any
/// strides, like `reshape`.
std::optional<OperatorHandle> viewOf(const OperatorHandle &copy) {
  OperatorName name = copy.operator_name();
  name.name.resize(name.name.size() - std::strlen("_copy"));
  if (name == OperatorName("aten::view", ""))
    name.name = "aten::reshape";
  auto view = c10::Dispatcher::singleton().findSchema(name);
  if (!view || view->schema().is_mutable())
    return std::nullopt;
  const auto &results = view->schema().returns();
  if (results.size() != 1 || !results[0].alias_info() ||
      view->schema().arguments().size() != copy.schema().arguments().size())
    return std::nullopt;
  return view;
}

} // namespace

void torch_ltc::registerViewCopies(const AtenOps &ops) {
  for (const OperatorHandle &copy : ops) {
    if (!copy.hasTag(at::Tag::view_copy))
      continue;
    std::optional<OperatorHandle> view = viewOf(copy);
    // Keeps kernels that Python has registered (for example, of narrow_copy).
    if (!view || copy.hasKernelForDispatchKey(DispatchKey::AutogradLazy) ||
        copy.hasKernelForDispatchKey(DispatchKey::CompositeImplicitAutograd))
      continue;
    registerAroundInAnyMode<ViewAndClone>(copy, *view);
  }
}
