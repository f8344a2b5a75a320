//===- data_assignment.h - `tensor.data = value` ----------------*- C++ -*-===//

#ifndef TORCH_LTC_EAGER_SEMANTICS_DATA_ASSIGNMENT_H
#define TORCH_LTC_EAGER_SEMANTICS_DATA_ASSIGNMENT_H

#include <ATen/core/Tensor.h>

namespace torch_ltc {

/// Makes `tensor` share the memory of `value`, as the attribute `data` of a CPU
/// tensor does. Throws c10::Error where PyTorch does.
void assignData(const at::Tensor &tensor, const at::Tensor &value);

} // namespace torch_ltc

#endif // TORCH_LTC_EAGER_SEMANTICS_DATA_ASSIGNMENT_H
