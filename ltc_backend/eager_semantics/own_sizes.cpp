//===- own_sizes.cpp - Sizes that outlive a value -------------------------===//
//
// `sizes()` of a functional wrapper returns a reference to the sizes of the
// wrapper's value (torch 2.13). If the wrapper's memory was written through
// another view, the next op replaces the value: a kernel of torch that keeps
// `self.sizes()` while it calls an op then reads freed memory. A wrapper also
// stores sizes itself. The kernels here make views and their operands return
// the stored sizes; no other tensors share memory.
//
//===----------------------------------------------------------------------===//

#include "eager_semantics/own_sizes.h"

#include "eager_semantics/registration.h"
#include "eager_semantics/view_chains.h"
#include "graph/live_tensors.h"
#include "shape/strides.h"
#include "tracing/boxed_kernels.h"
#include "tracing/writing_call.h"

#include <ATen/FunctionalStorageImpl.h>
#include <ATen/FunctionalTensorWrapper.h>
#include <ATen/core/stack.h>

using namespace torch_ltc;
using at::Tensor;
using c10::DispatchKey;
using c10::OperatorHandle;
using torch::jit::Stack;

namespace {

/// Access to protected state of a TensorImpl.
struct SizesPolicy : c10::TensorImpl {
  static bool isDefault(const c10::TensorImpl &impl) {
    return !(impl.*
             &SizesPolicy::matches_policy)(SizesStridesPolicy::CustomStrides);
  }
};

} // namespace

void torch_ltc::useOwnSizes(const Tensor &tensor) {
  if (!isLazyWrapper(tensor) ||
      SizesPolicy::isDefault(*tensor.unsafeGetTensorImpl()))
    return;
  // Copies the sizes and strides, which under the custom policy belong to the
  // wrapper's value. The sizes that the wrapper stores may be outdated, because
  // they were set when it was created.
  Strides sizes(tensor.sizes()), strides(tensor.strides());
  int64_t offset = tensor.sym_storage_offset().expect_int();
  c10::TensorImpl *impl = tensor.unsafeGetTensorImpl();
  impl->set_sizes_and_strides(sizes, strides, offset);
  impl->set_custom_sizes_strides(c10::TensorImpl::SizesStridesPolicy::Default);
}

void torch_ltc::noteView(const Tensor &view, const Tensor &self) {
  using at::functionalization::impl::unsafeGetFunctionalWrapper;
  useOwnSizes(view);
  if (!isLazyWrapper(view) || !isLazyWrapper(self))
    return;
  // `as_strided` reads the memory, so it doesn't update the value of `self`.
  if (unsafeGetFunctionalWrapper(self)->is_up_to_date())
    generationOf(*unsafeGetFunctionalWrapper(view)) =
        functionalMemory(view).generation();
  LiveSet::ofThisThread()->noteView(view, self);
  shortenViewChain(view, self);
}

namespace {

class ViewOfOwnSizes final : public KernelAround {
public:
  using KernelAround::KernelAround;

  void operator()(const OperatorHandle &op, c10::DispatchKeySet keys,
                  Stack *stack) {
    const Tensor self =
        torch::jit::peek(*stack, 0, op.schema().arguments().size()).toTensor();
    useOwnSizes(self);
    if (isLazyWrapper(self))
      restoreDroppedValue(self);
    previous.callBoxed(op, keys, stack);
    const c10::IValue &result = stack->back();
    if (result.isTensor())
      noteView(result.toTensor(), self);
    else if (result.isTensorList())
      for (const Tensor &view : result.toTensorVector())
        noteView(view, self);
  }
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
