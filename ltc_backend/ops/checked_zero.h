//===- checked_zero.h - A check of values in the program --------*- C++ -*-===//

#ifndef TORCH_LTC_OPS_CHECKED_ZERO_H
#define TORCH_LTC_OPS_CHECKED_ZERO_H

#include <ATen/Functions.h>

namespace torch_ltc {

/// 0, if all of the condition is true: what it is added to fails otherwise,
/// when the program runs.
inline at::Tensor checkedZero(const at::Tensor &condition,
                              const char *message) {
  return at::_functional_assert_async(
      condition.all(), message,
      at::zeros({}, condition.options().dtype(at::kLong)));
}

} // namespace torch_ltc

#endif // TORCH_LTC_OPS_CHECKED_ZERO_H
