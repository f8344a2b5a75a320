//===- view_chains.cpp - Views of views of views --------------------------===//

#include "eager_semantics/view_chains.h"

#include "eager_semantics/replayed_views.h"
#include "graph/view_values.h"
#include "tracing/wrapped_value.h"

#include <ATen/FunctionalStorageImpl.h>
#include <ATen/FunctionalTensorWrapper.h>
#include <ATen/Functions.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <torch/csrc/autograd/variable.h>

#include <memory>

using namespace torch_ltc;
using at::Tensor;

namespace functional = at::functionalization::impl;

static constexpr size_t kMaxRecords = 8;

namespace {

/// Like torch's own class for `as_strided`, which libtorch (2.13) doesn't
/// export; without symbolic sizes.
struct AsStrided final : torch::autograd::ViewFunc {
  AsStrided(at::IntArrayRef size, at::IntArrayRef stride, int64_t offset)
      : size(size.vec()), stride(stride.vec()), offset(offset) {}

  Tensor operator()(const Tensor &base) const override {
    return base.as_strided(size, stride, offset);
  }

  std::unique_ptr<ViewFunc> clone_and_set(
      std::optional<std::vector<c10::SymInt>> = std::nullopt,
      std::optional<std::vector<Tensor>> = std::nullopt) const override {
    return std::make_unique<AsStrided>(size, stride, offset);
  }

private:
  std::vector<int64_t> size, stride;
  int64_t offset;
};

} // namespace

/// Makes autograd derive `view` from its base by one call of `as_strided`.
static void recordAsStrided(const Tensor &view) {
  if (!isReplayedView(view))
    return;
  const Tensor base = torch::autograd::impl::get_view_autograd_meta(view)
                          ->get_backward_view()
                          .base_;
  if (base.scalar_type() != view.scalar_type() || base.is_conj() ||
      base.is_neg())
    return;
  replayBy(view,
           {base,
            std::make_unique<AsStrided>(view.sizes(), view.strides(),
                                        view.sym_storage_offset().expect_int()),
            /*rev_view_func=*/nullptr});
}

void torch_ltc::shortenViewChain(const Tensor &view, const Tensor &self) {
  auto *wrapper = functional::unsafeGetFunctionalWrapper(view);
  if (wrapper->view_metas().size() <= kMaxRecords || wrapper->is_symbolic())
    return;
  const Tensor &base = functionalMemory(view).base();
  if (base.scalar_type() != view.scalar_type() || view.is_conj() ||
      view.is_neg() || !base.is_non_overlapping_and_dense())
    return;
  const int64_t offset = view.sym_storage_offset().expect_int();
  ViewRecords records;
  if (view.sizes() != base.sizes() || view.strides() != base.strides() ||
      offset != base.sym_storage_offset().expect_int()) {
    at::AutoDispatchBelowADInplaceOrView below;
    Tensor same =
        at::as_strided(wholeMemory(view), view.sizes(), view.strides(), offset);
    records = functional::unsafeGetFunctionalWrapper(same)->view_metas();
  }
  // The wrapper has no method to replace records (torch 2.13). The value stays.
  const_cast<ViewRecords &>(wrapper->view_metas()).swap(records);
  if (!self.is_conj() && !self.is_neg())
    recordAsStrided(self);
}
