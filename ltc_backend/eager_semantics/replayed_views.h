//===- replayed_views.h - Views that autograd derives again -----*- C++ -*-===//
//
// When the memory of a view was written, autograd derives the view's gradient
// again (torch 2.13): on device `lazy` it repeats calls to ops on the base,
// which are recorded when the view is made.
//
//===----------------------------------------------------------------------===//

#ifndef TORCH_LTC_EAGER_SEMANTICS_REPLAYED_VIEWS_H
#define TORCH_LTC_EAGER_SEMANTICS_REPLAYED_VIEWS_H

#include <ATen/core/Tensor.h>

namespace torch_ltc {

/// Whether autograd has recorded calls that make `tensor`.
bool isReplayedView(const at::Tensor &tensor);

/// Replaces the calls recorded for `view` by those for `same`, which is the
/// same part of the same memory. Does nothing unless both are replayed views.
void replayLike(const at::Tensor &view, const at::Tensor &same);

} // namespace torch_ltc

#endif // TORCH_LTC_EAGER_SEMANTICS_REPLAYED_VIEWS_H
