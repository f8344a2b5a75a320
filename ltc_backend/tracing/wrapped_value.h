//===- wrapped_value.h - Values of functional tensors -----------*- C++ -*-===//
//
// Functions for kernels that trace ops on many tensors without
// functionalization's own kernels, which would take longer than creating the
// nodes. Users' tensors are functional wrappers around lazy tensors.
//
//===----------------------------------------------------------------------===//

#ifndef TORCH_LTC_TRACING_WRAPPED_VALUE_H
#define TORCH_LTC_TRACING_WRAPPED_VALUE_H

#include <ATen/core/Tensor.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include <memory>
#include <vector>

namespace at::functionalization {
struct ViewMeta;
}

namespace torch_ltc {

/// Whether an op on the tensor only needs `valueOf` and `replaceValue`, because
/// nothing (such as a TorchDispatchMode) has to see the ops that are traced.
bool isPlainWrapper(const at::Tensor &tensor);

/// Whether TorchDynamo captures ops on the tensor with symbolic sizes: reading
/// such a size as a number makes it a constant of the captured graph.
inline bool hasSymbolicSizes(const at::Tensor &tensor) {
  return tensor.defined() &&
         tensor.unsafeGetTensorImpl()->has_symbolic_sizes_strides();
}

/// The number of writes to the tensor; 0 for an inference tensor, which doesn't
/// count them.
inline int64_t versionOf(const at::Tensor &tensor) {
  return tensor.is_inference() ? 0 : tensor._version();
}

/// Whether a shortcut that traces an op directly accepts `tensor` as an operand
/// of type `dtype`. Transforms of torch.func and forward-mode gradients need
/// torch's own implementation of the op.
bool isPlainOperand(const at::Tensor &tensor, at::ScalarType dtype);

/// While such an object exists, ops call the kernels of the device's own key.
/// Tracing calls no kernels, but reading a value may.
class BelowFunctionalization {
  c10::impl::ExcludeDispatchKeyGuard guard{
      c10::autograd_dispatch_keyset_with_ADInplaceOrView |
      c10::DispatchKeySet(c10::DispatchKey::Functionalize)};
};

/// The lazy tensor inside a functional wrapper, with the wrapper's pending
/// updates applied.
at::Tensor valueOf(const at::Tensor &tensor);

/// Makes `value`, a lazy tensor without wrapper, the tensor's new value, as
/// functionalization's generated kernel of an in-place op does after the op
/// (torch 2.13).
void setValue(const at::Tensor &tensor, const at::Tensor &value);

/// Sets the value as `setValue` does, for in-place ops whose kernels are above
/// autograd: also increments the tensor's version. `value`, which no other
/// tensor may use, gets the tensor's strides.
void replaceValue(const at::Tensor &tensor, const at::Tensor &value);

/// The sequence of views through which a wrapper sees its memory.
using ViewRecords =
    std::vector<std::shared_ptr<at::functionalization::ViewMeta>>;

/// Makes a wrapper see its memory through the views `records`; returns the
/// previous records.
ViewRecords replaceViewRecords(const at::Tensor &tensor, ViewRecords records);

/// Gives the tensor new memory if only a Python storage object shares the
/// current memory, because torch (2.13) treats that object as a view. Must be
/// called before a tensor is resized beyond its memory.
void leavePythonStorage(const at::Tensor &tensor);

/// A wrapper that shares the memory of `view` and sees all of it.
at::Tensor wholeMemory(const at::Tensor &view);

} // namespace torch_ltc

#endif // TORCH_LTC_TRACING_WRAPPED_VALUE_H
