//===- replayed_views.h - Views that autograd derives again -----*- C++ -*-===//
//
// After a write to the memory of a view, autograd derives the view's gradient
// function again (torch 2.13). On device `lazy`, autograd records the calls
// that make a view, and repeats them on the base.
//
//===----------------------------------------------------------------------===//

#ifndef TORCH_LTC_EAGER_SEMANTICS_REPLAYED_VIEWS_H
#define TORCH_LTC_EAGER_SEMANTICS_REPLAYED_VIEWS_H

#include <ATen/core/Tensor.h>
#include <torch/csrc/autograd/variable.h>

namespace torch_ltc {

/// Whether autograd has recorded the calls that made `tensor`.
bool isReplayedView(const at::Tensor &tensor);

/// Replaces the calls recorded for `view`, a replayed view.
void replayBy(const at::Tensor &view, torch::autograd::ViewInfo calls);

/// Replaces the calls recorded for `view` by those for `same`, which is the
/// same part of the same memory. Does nothing unless both are replayed views.
void replayLike(const at::Tensor &view, const at::Tensor &same);

} // namespace torch_ltc

#endif // TORCH_LTC_EAGER_SEMANTICS_REPLAYED_VIEWS_H
