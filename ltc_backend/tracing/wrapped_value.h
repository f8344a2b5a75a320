//===- wrapped_value.h - Values of functional tensors -----------*- C++ -*-===//
//
// For kernels that trace ops on many tensors without functionalisation's own
// kernels, which cost more than the nodes. Tensors of users are functional
// wrappers around lazy tensors.
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

/// Whether `valueOf` and `replaceValue` are all that an op does with it: nobody
/// (a TorchDispatchMode) wants to see the ops themselves.
bool isPlainWrapper(const at::Tensor &tensor);

/// Whether an op of `tensor` and others of that type is traced as it stands:
/// transforms of torch.func and forward-mode gradients go torch's way.
bool isPlainOperand(const at::Tensor &tensor, at::ScalarType dtype);

/// While it lives, kernels of the device's own key are called. Tracing calls
/// none, but reading a value may.
class BelowFunctionalization {
  c10::impl::ExcludeDispatchKeyGuard guard{
      c10::autograd_dispatch_keyset_with_ADInplaceOrView |
      c10::DispatchKeySet(c10::DispatchKey::Functionalize)};
};

/// The lazy tensor inside.
at::Tensor valueOf(const at::Tensor &tensor);

/// What the generated kernel of an in-place op does after the op (torch 2.13):
/// `value`, a lazy tensor without wrapper, is the tensor's new value.
void setValue(const at::Tensor &tensor, const at::Tensor &value);

/// The same above autograd, which counts the tensor's versions.
void replaceValue(const at::Tensor &tensor, const at::Tensor &value);

/// The views, one after the other, by which a wrapper sees its memory.
using ViewRecords =
    std::vector<std::shared_ptr<at::functionalization::ViewMeta>>;

/// Lets a wrapper see its memory by other views; returns those of before.
ViewRecords replaceViewRecords(const at::Tensor &tensor, ViewRecords records);

/// Before a tensor is resized beyond its memory: gives it a memory of its own
/// if nothing but a storage object of Python shares the one that it has, since
/// torch takes that object for a view (torch 2.13).
void leavePythonStorage(const at::Tensor &tensor);

/// A wrapper that shares the memory of `view` and sees all of it.
at::Tensor wholeMemory(const at::Tensor &view);

} // namespace torch_ltc

#endif // TORCH_LTC_TRACING_WRAPPED_VALUE_H
