//===- memoryless_views.cpp - Views of wrappers below __torch_dispatch__ --===//
//
// A wrapper subclass (DTensor, the tensors of PyTorch's compliance tests) has
// sizes, strides and a storage, but no memory and no traced value. Where
// `__torch_dispatch__` is disabled, the kernels here only compute a view's
// sizes and strides, and let it share the storage, as on the CPU, because
// autograd compares the storages of a view and its base.
//
//===----------------------------------------------------------------------===//

#include "eager_semantics/registration.h"
#include "graph/torch_dispatch.h"
#include "tracing/boxed_kernels.h"

#include <ATen/core/stack.h>
#include <torch/csrc/lazy/core/tensor_impl.h>

#include <algorithm>

using namespace torch_ltc;
using c10::DispatchKey;
using c10::OperatorHandle;
using torch::jit::Stack;

namespace {

bool isMemoryless(const c10::IValue &value) {
  if (!value.isTensor() || !value.toTensor().defined())
    return false;
  const at::Tensor &tensor = value.toTensor();
  return isSubclass(tensor) && tensor.device().is_lazy() &&
         !dynamic_cast<torch::lazy::LTCTensorImpl *>(
             tensor.unsafeGetTensorImpl());
}

/// The kernel of a view op at key Lazy, which calls the CPU's kernel for
/// tensors without memory.
class MemorylessView final : public KernelAround {
public:
  using KernelAround::KernelAround;

  void operator()(const OperatorHandle &op, c10::DispatchKeySet keys,
                  Stack *stack) {
    if (!isMemoryless(
            torch::jit::peek(*stack, 0, op.schema().arguments().size())))
      return previous.callBoxed(op, keys, stack);
    op.redispatchBoxed(c10::DispatchKeySet(DispatchKey::CPU), stack);
  }
};

/// Whether the op only changes or returns sizes, strides and storages. False
/// for composite ops: they call other ops, and would lose their gradients with
/// a kernel at this key.
bool isOfMetadata(const OperatorHandle &op) {
  const c10::FunctionSchema &schema = op.schema();
  if (op.hasKernelForDispatchKey(DispatchKey::CompositeImplicitAutograd) ||
      schema.arguments().empty() || schema.returns().empty() ||
      !schema.arguments()[0].alias_info() || !schema.returns()[0].alias_info())
    return false;
  if (!schema.arguments()[0].alias_info()->isWrite())
    return true;
  const c10::ArrayRef<at::Tag> tags = op.getTags();
  return std::find(tags.begin(), tags.end(), at::Tag::inplace_view) !=
         tags.end();
}

} // namespace

void torch_ltc::registerMemorylessViews() {
  SilentRegistration silence;
  for (const OperatorHandle &op : atenOps())
    if (isOfMetadata(op))
      registerAround<MemorylessView>(op, DispatchKey::Lazy);
  // This op returns a view, although its schema doesn't declare that.
  registerAround<MemorylessView>(findOp({"aten::_unsafe_view", ""}),
                                 DispatchKey::Lazy);
}
