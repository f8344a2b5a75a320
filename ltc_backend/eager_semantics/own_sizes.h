//===- own_sizes.h - Sizes that outlive a value -----------------*- C++ -*-===//

#ifndef TORCH_LTC_EAGER_SEMANTICS_OWN_SIZES_H
#define TORCH_LTC_EAGER_SEMANTICS_OWN_SIZES_H

#include <ATen/core/Tensor.h>

namespace torch_ltc {

/// A functional wrapper around a lazy tensor returns its own sizes from here
/// on, instead of a reference to those of its value; see own_sizes.cpp.
void useOwnSizes(const at::Tensor &tensor);

/// `view`, a functional wrapper that was just created, has the current value of
/// its memory. torch (2.13) assumes that it doesn't if the memory was ever
/// written, and computes the view again when it is first used.
void noteCurrentValue(const at::Tensor &view);

} // namespace torch_ltc

#endif // TORCH_LTC_EAGER_SEMANTICS_OWN_SIZES_H
