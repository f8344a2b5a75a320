//===- optional_tensor.h - Operands that may be missing ---------*- C++ -*-===//

#ifndef TORCH_LTC_OPS_OPTIONAL_TENSOR_H
#define TORCH_LTC_OPS_OPTIONAL_TENSOR_H

#include <ATen/core/Tensor.h>

#include <optional>

namespace torch_ltc {

using OptionalTensor = std::optional<at::Tensor>;

/// Whether the tensor exists. Autograd represents a missing tensor by None or
/// by an undefined tensor.
inline bool exists(const OptionalTensor &tensor) {
  return tensor && tensor->defined();
}

/// The tensor, or none if it is undefined.
inline OptionalTensor optional(const at::Tensor &tensor) {
  return tensor.defined() ? OptionalTensor(tensor) : std::nullopt;
}

} // namespace torch_ltc

#endif // TORCH_LTC_OPS_OPTIONAL_TENSOR_H
