//===- tensor_arguments.h - Tensors in an op's arguments --------*- C++ -*-===//

#ifndef TORCH_LTC_IR_TENSOR_ARGUMENTS_H
#define TORCH_LTC_IR_TENSOR_ARGUMENTS_H

#include <ATen/core/function_schema.h>
#include <ATen/core/ivalue.h>
#include <ATen/core/jit_type.h>

#include <optional>
#include <vector>

namespace torch_ltc {

/// Whether the op writes to the argument.
inline bool isWrittenArgument(const c10::Argument &argument) {
  return argument.alias_info() && argument.alias_info()->isWrite();
}

/// Whether `value` is an argument of type `Tensor?[]`, such as the indices of
/// `index`. The element type of a list that TorchScript's interpreter makes may
/// be a subtype of `Tensor?`, which `IValue::isOptionalTensorList` doesn't
/// accept (torch 2.13).
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

/// Returns `value` with each of its tensors replaced by `function(tensor)`.
template <typename Function>
c10::IValue mapTensors(const c10::IValue &value, Function function) {
  if (value.isTensor())
    return function(value.toTensor());
  if (value.isTensorList()) {
    c10::List<at::Tensor> list;
    for (const at::Tensor &tensor : value.toTensorVector())
      list.push_back(function(tensor));
    return list;
  }
  if (isOptionalTensorList(value)) {
    c10::List<std::optional<at::Tensor>> list;
    for (const std::optional<at::Tensor> &tensor : toOptionalTensors(value))
      list.push_back(tensor ? std::optional(function(*tensor)) : std::nullopt);
    return list;
  }
  return value;
}

} // namespace torch_ltc

#endif // TORCH_LTC_IR_TENSOR_ARGUMENTS_H
