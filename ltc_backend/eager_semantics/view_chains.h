//===- view_chains.h - Views of views of views ------------------*- C++ -*-===//

#ifndef TORCH_LTC_EAGER_SEMANTICS_VIEW_CHAINS_H
#define TORCH_LTC_EAGER_SEMANTICS_VIEW_CHAINS_H

#include <ATen/core/Tensor.h>

namespace torch_ltc {

/// If `view`, a functional wrapper, has many view records, removes them if it
/// has the geometry of the memory, and otherwise replaces them by one record of
/// `as_strided`. Also replaces the calls that autograd has recorded for `self`,
/// of which `view` is a new view.
///
/// Functionalization and autograd (torch 2.13) copy the records of a tensor for
/// each view of it, and repeat all of them after a write. In a loop that views
/// its state in each step (`state = state[:]`), steps would become ever slower.
void shortenViewChain(const at::Tensor &view, const at::Tensor &self);

} // namespace torch_ltc

#endif // TORCH_LTC_EAGER_SEMANTICS_VIEW_CHAINS_H
