//===- own_sizes.h - Sizes that outlive a value -----------------*- C++ -*-===//

#ifndef TORCH_LTC_EAGER_SEMANTICS_OWN_SIZES_H
#define TORCH_LTC_EAGER_SEMANTICS_OWN_SIZES_H

#include <ATen/core/Tensor.h>

namespace torch_ltc {

/// Makes a functional wrapper around a lazy tensor return sizes that it stores,
/// instead of a reference to the sizes of its value; see own_sizes.cpp.
void useOwnSizes(const at::Tensor &tensor);

/// Makes `view`, a functional wrapper that was just created from `self`, use
/// its own sizes, and records that they share memory. If `self` is up to date,
/// also records that `view` has the current value: if the memory was ever
/// written, torch (2.13) assumes that a new view is outdated, and computes it
/// again at its first use. Does nothing for other tensors.
void noteView(const at::Tensor &view, const at::Tensor &self);

} // namespace torch_ltc

#endif // TORCH_LTC_EAGER_SEMANTICS_OWN_SIZES_H
