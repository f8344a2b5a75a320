//===- optional_tensor_list.h - Lists of optional tensors -------*- C++ -*-===//

#ifndef TORCH_LTC_IR_OPTIONAL_TENSOR_LIST_H
#define TORCH_LTC_IR_OPTIONAL_TENSOR_LIST_H

#include <ATen/core/ivalue.h>
#include <ATen/core/jit_type.h>

#include <optional>
#include <vector>

namespace torch_ltc {

/// Whether `value` is an argument of type `Tensor?[]`, such as the indices of
/// `index`. A list that TorchScript's interpreter makes has the element type of
/// its elements, which `IValue::isOptionalTensorList` doesn't accept (torch
/// 2.13).
inline bool isOptionalTensorList(const c10::IValue &value) {
  if (!value.isList() || value.isTensorList())
    return false;
  if (value.isOptionalTensorList())
    return true;
  return value.toList().elementType()->isSubtypeOf(
      *c10::OptionalType::ofTensor());
}

inline std::vector<std::optional<at::Tensor>>
toOptionalTensors(const c10::IValue &value) {
  std::vector<std::optional<at::Tensor>> tensors;
  for (const c10::IValue &element : value.toListRef())
    tensors.push_back(element.toOptional<at::Tensor>());
  return tensors;
}

} // namespace torch_ltc

#endif // TORCH_LTC_IR_OPTIONAL_TENSOR_LIST_H
