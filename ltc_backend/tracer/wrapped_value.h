//===- wrapped_value.h - Values of functional tensors -----------*- C++ -*-===//
//
// For kernels that trace ops on many tensors without functionalisation's own
// kernels, which cost more than the nodes. Tensors of users are functional
// wrappers around lazy tensors.
//
//===----------------------------------------------------------------------===//

#ifndef TORCH_LTC_TRACER_WRAPPED_VALUE_H
#define TORCH_LTC_TRACER_WRAPPED_VALUE_H

#include <ATen/core/Tensor.h>

namespace torch_ltc {

/// Whether `valueOf` and `replaceValue` are all that an op does with it: nobody
/// (a TorchDispatchMode) wants to see the ops themselves.
bool isPlainWrapper(const at::Tensor &tensor);

/// The lazy tensor inside.
at::Tensor valueOf(const at::Tensor &tensor);

/// What the generated kernel of an in-place op does after the op (torch 2.13):
/// `value`, a lazy tensor without wrapper, is the tensor's new value.
void setValue(const at::Tensor &tensor, const at::Tensor &value);

/// The same above autograd, which counts the tensor's versions.
void replaceValue(const at::Tensor &tensor, const at::Tensor &value);

} // namespace torch_ltc

#endif // TORCH_LTC_TRACER_WRAPPED_VALUE_H
