//===- own_sizes.cpp - Sizes that outlive a value -------------------------===//
//
// The sizes that a functional wrapper returns are a reference to those of its
// value (torch 2.13). If its memory was written through another view, the next
// op replaces that value: a kernel of torch that keeps `self.sizes()` while it
// calls an op then reads freed memory. A wrapper also has sizes of its own,
// which are always equal. Those are used for tensors that take part in a view,
// because only they can share memory.
//
//===----------------------------------------------------------------------===//

#include "eager_semantics/registration.h"
#include "shape/strides.h"
#include "tracing/boxed_kernels.h"
#include "tracing/writing_call.h"

#include <ATen/core/stack.h>

using namespace torch_ltc;
using at::Tensor;
using c10::DispatchKey;
using c10::OperatorHandle;
using torch::jit::Stack;

namespace {

void useOwnSizes(const Tensor &tensor) {
  if (!isLazyWrapper(tensor))
    return;
  // Copies, because while the wrapper asks its value, these belong to the
  // value. Its own may date from its creation.
  Strides sizes(tensor.sizes()), strides(tensor.strides());
  int64_t offset = tensor.sym_storage_offset().expect_int();
  c10::TensorImpl *impl = tensor.unsafeGetTensorImpl();
  impl->set_sizes_and_strides(sizes, strides, offset);
  impl->set_custom_sizes_strides(c10::TensorImpl::SizesStridesPolicy::Default);
}

class ViewOfOwnSizes final : public c10::OperatorKernel {
public:
  explicit ViewOfOwnSizes(c10::SafeKernelFunction previous)
      : previous(std::move(previous)) {}

  void operator()(const OperatorHandle &op, c10::DispatchKeySet keys,
                  Stack *stack) {
    useOwnSizes(
        torch::jit::peek(*stack, 0, op.schema().arguments().size()).toTensor());
    previous.callBoxed(op, keys, stack);
    const c10::IValue &result = stack->back();
    if (result.isTensor())
      useOwnSizes(result.toTensor());
    else if (result.isTensorList())
      for (const Tensor &view : result.toTensorVector())
        useOwnSizes(view);
  }

private:
  c10::SafeKernelFunction previous;
};

bool isView(const c10::FunctionSchema &schema) {
  return !schema.is_mutable() && schema.returns().size() == 1 &&
         schema.returns()[0].alias_info() && !schema.arguments().empty() &&
         schema.arguments()[0].type()->kind() == c10::TypeKind::TensorType;
}

} // namespace

void torch_ltc::registerOwnSizes(const AtenOps &ops) {
  SilentRegistration silence;
  for (const OperatorHandle &op : ops)
    if (isView(op.schema()) &&
        !op.hasKernelForDispatchKey(DispatchKey::CompositeImplicitAutograd))
      registerAround<ViewOfOwnSizes>(op, DispatchKey::Functionalize);
}
