//===- checked_zero.h - A check of values in the program --------*- C++ -*-===//

#ifndef TORCH_LTC_TRACING_CHECKED_ZERO_H
#define TORCH_LTC_TRACING_CHECKED_ZERO_H

#include <ATen/Functions.h>

namespace torch_ltc {

/// Returns the number 0, an int64 of rank 0. If an element of `condition` is
/// false when the program runs, the computation of all values to which the zero
/// is added fails with `message`.
inline at::Tensor checkedZero(const at::Tensor &condition,
                              const char *message) {
  return at::_functional_assert_async(
      condition.all(), message,
      at::zeros({}, condition.options().dtype(at::kLong)));
}

} // namespace torch_ltc

#endif // TORCH_LTC_TRACING_CHECKED_ZERO_H
