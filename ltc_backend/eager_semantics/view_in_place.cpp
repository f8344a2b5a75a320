//===- view_in_place.cpp - In-place changes of a tensor's shape -----------===//
//
// After a write to the base of a view, torch derives the view's gradient
// function again (2.13). Eager does so from the view's strides. If
// functionalization manages the memory, torch repeats the view's op on the
// base. The repeated op yields a different part of the memory if `t_` or a
// similar op has changed the base's shape since, so such a change is rejected.
// If an op changes the shape of the view itself, torch also repeats this op.
//
// Functionalization takes the new shape from a Meta tensor, which has strides,
// but no offset (torch 2.13): without the kernels here, the op would move a
// view to the beginning of its memory.
//
//===----------------------------------------------------------------------===//

#include "eager_semantics/registration.h"
#include "eager_semantics/replayed_views.h"
#include "events/op_error.h"
#include "graph/torch_dispatch.h"
#include "tracing/boxed_kernels.h"
#include "tracing/writing_call.h"

#include <ATen/core/grad_mode.h>
#include <ATen/core/stack.h>
#include <ATen/ops/alias.h>
#include <torch/csrc/autograd/variable.h>

#include <cstddef>

using namespace torch_ltc;
using c10::DispatchKey;
using c10::OperatorHandle;
using torch::jit::Stack;

namespace {

/// Whether gradients of views of `self` may be requested: `self` has gradients,
/// and other tensors share its memory. False for
/// - leaves, which eager rejects;
/// - views, whose own calls are changed (replayLike);
/// - subclasses: one with inner tensors calls the op on these, which are then
///   checked, and fake tensors share no memory.
bool mayHaveViewsWithGradients(const at::Tensor &self) {
  return at::GradMode::is_enabled() && self.requires_grad() &&
         !self.is_leaf() && !hasTorchDispatch(self) && !self.is_view() &&
         self.has_storage() && self.storage().use_count() > 1;
}

class ShapeInPlace final : public KernelAround {
public:
  /// `view` does the same as the op, but not in place.
  ShapeInPlace(OperatorHandle view, c10::SafeKernelFunction previous)
      : KernelAround(std::move(previous)), view(std::move(view)) {}

  void operator()(const OperatorHandle &op, c10::DispatchKeySet keys,
                  Stack *stack) {
    size_t numArguments = op.schema().arguments().size();
    const at::Tensor self =
        torch::jit::peek(*stack, 0, numArguments).toTensor();
    TORCH_CHECK(!mayHaveViewsWithGradients(self), op.schema().name(),
                " would change the shape of a tensor that shares memory with "
                "views (or with tensors saved for the backward pass), whose "
                "gradients would be lost on device 'lazy': call the op "
                "without the underscore, or before there are views.",
                opSuffix(op.schema().name()));
    if (!isReplayedView(self))
      return previous.callBoxed(op, keys, stack);
    Stack changed(stack->end() - std::ptrdiff_t(numArguments), stack->end());
    {
      // Only the alias's record is used. With gradients, torch would reject the
      // call for a view that can't be written, with a different message.
      at::NoGradGuard noGradients;
      changed[0] = at::alias(self); // with the old shape
    }
    previous.callBoxed(op, keys, stack);
    at::NoGradGuard noGradients;
    view.callBoxed(&changed);
    replayLike(self, changed[0].toTensor());
  }

private:
  OperatorHandle view;
};

/// Wraps an in-place view op at key Functionalize, to preserve the offset of
/// `self`.
class OffsetInPlace final : public KernelAround {
public:
  using KernelAround::KernelAround;

  void operator()(const OperatorHandle &op, c10::DispatchKeySet keys,
                  Stack *stack) {
    const at::Tensor self =
        torch::jit::peek(*stack, 0, op.schema().arguments().size()).toTensor();
    if (!isLazyWrapper(self))
      return previous.callBoxed(op, keys, stack);
    int64_t offset = self.storage_offset();
    previous.callBoxed(op, keys, stack);
    // Like the previous kernel, changes the wrapper, not its value.
    self.unsafeGetTensorImpl()->set_storage_offset(offset);
  }
};

} // namespace

bool torch_ltc::isReplayedView(const at::Tensor &tensor) {
  if (!tensor.defined() || hasTorchDispatch(tensor))
    return false;
  auto *meta = torch::autograd::impl::get_view_autograd_meta(tensor);
  return meta && meta->has_bw_view() && meta->get_backward_view().has_view_fn();
}

void torch_ltc::replayBy(const at::Tensor &view,
                         torch::autograd::ViewInfo calls) {
  // torch (2.13) has no function that changes an existing view's ViewInfo.
  const_cast<torch::autograd::ViewInfo &>(
      torch::autograd::impl::get_view_autograd_meta(view)
          ->get_backward_view()) = std::move(calls);
}

void torch_ltc::replayLike(const at::Tensor &view, const at::Tensor &same) {
  if (!isReplayedView(view) || !isReplayedView(same))
    return;
  const torch::autograd::ViewInfo &info =
      torch::autograd::impl::get_view_autograd_meta(same)->get_backward_view();
  replayBy(view,
           {info.base_, info.view_fn().clone_and_set(), info.rev_view_fn()});
}

void torch_ltc::registerInPlaceViewChecks() {
  SilentRegistration silence;
  struct Row {
    c10::OperatorName inPlace, view;
  };
  for (const auto &[name, view] : std::initializer_list<Row>{
           {{"aten::as_strided_", ""}, {"aten::as_strided", ""}},
           {{"aten::squeeze_", ""}, {"aten::squeeze", ""}},
           {{"aten::squeeze_", "dim"}, {"aten::squeeze", "dim"}},
           {{"aten::squeeze_", "dims"}, {"aten::squeeze", "dims"}},
           {{"aten::t_", ""}, {"aten::t", ""}},
           {{"aten::transpose_", ""}, {"aten::transpose", "int"}},
           {{"aten::unsqueeze_", ""}, {"aten::unsqueeze", ""}}}) {
    registerAround<ShapeInPlace>(findOp(name), DispatchKey::AutogradLazy,
                                 findOp(view));
    if (name.name != "aten::as_strided_") // has an argument for the offset
      registerAround<OffsetInPlace>(findOp(name), DispatchKey::Functionalize);
  }
}
