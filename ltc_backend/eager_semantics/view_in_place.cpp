//===- view_in_place.cpp - In-place changes of shared shapes --------------===//
//
// The gradient of a view of a written base is derived again (torch 2.13). Eager
// uses the view's strides. If functionalization manages the memory, torch calls
// the view's op on the base again, which yields another part of the memory if
// `t_` or a similar op has changed the base's shape meanwhile.
//
//===----------------------------------------------------------------------===//

#include "eager_semantics/registration.h"
#include "events/op_error.h"
#include "tracing/boxed_kernels.h"

#include <ATen/core/grad_mode.h>
#include <ATen/core/stack.h>

using namespace torch_ltc;
using c10::DispatchKey;
using c10::OperatorHandle;
using torch::jit::Stack;

namespace {

/// Whether gradients of views of `self` may be requested: it has gradients
/// itself, and other tensors share its memory. What a subclass does (a
/// capture's fake tensors share nothing) is checked where it calls the op on
/// its tensors.
bool mayHaveViewsWithGradients(const at::Tensor &self) {
  return at::GradMode::is_enabled() && self.requires_grad() &&
         !self.key_set().has(DispatchKey::Python) && !self.is_view() &&
         self.has_storage() && self.storage().use_count() > 1;
}

class ShapeInPlace final : public c10::OperatorKernel {
public:
  explicit ShapeInPlace(c10::SafeKernelFunction previous)
      : previous(std::move(previous)) {}

  void operator()(const OperatorHandle &op, c10::DispatchKeySet keys,
                  Stack *stack) {
    size_t numArguments = op.schema().arguments().size();
    const at::Tensor &self =
        torch::jit::peek(*stack, 0, numArguments).toTensor();
    TORCH_CHECK(!mayHaveViewsWithGradients(self), op.schema().name(),
                " would change the shape of a tensor that shares memory with "
                "views (or with tensors saved for the backward pass), whose "
                "gradients would be lost on device 'lazy': call the op "
                "without the underscore, or before there are views.",
                opSuffix(op.schema().name()));
    previous.callBoxed(op, keys, stack);
  }

private:
  c10::SafeKernelFunction previous;
};

} // namespace

void torch_ltc::registerShapesInPlace() {
  SilentRegistration silence;
  for (const c10::OperatorName &name :
       std::initializer_list<c10::OperatorName>{{"aten::as_strided_", ""},
                                                {"aten::squeeze_", ""},
                                                {"aten::squeeze_", "dim"},
                                                {"aten::squeeze_", "dims"},
                                                {"aten::t_", ""},
                                                {"aten::transpose_", ""},
                                                {"aten::unsqueeze_", ""}})
    registerAround<ShapeInPlace>(findOp(name), DispatchKey::AutogradLazy);
}
