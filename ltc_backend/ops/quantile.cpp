//===- quantile.cpp - Quantiles whose positions are checked ---------------===//
//
// On the CPU, eager reads the values of `q` to check them; on other devices, it
// doesn't check them. Here the program checks them.
//
//===----------------------------------------------------------------------===//

#include "graph/torch_dispatch.h"
#include "ops/registration.h"
#include "tracing/checked_zero.h"
#include "tracing/writing_call.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/nanquantile_native.h>
#include <ATen/ops/quantile_native.h>

using namespace torch_ltc;
using at::Tensor;

namespace {

Tensor checkedPositions(const Tensor &q) {
  if (!isLazyWrapper(q) || hasTorchDispatch(q) ||
      !at::isFloatingType(q.scalar_type()) || !q.numel())
    return q;
  return q + checkedZero(q.ge(0).logical_and(q.le(1)),
                         "quantile() q values must be in the range [0, 1]");
}

Tensor quantile(const Tensor &self, const Tensor &q, std::optional<int64_t> dim,
                bool keepdim, std::string_view interpolation) {
  return at::native::quantile(self, checkedPositions(q), dim, keepdim,
                              interpolation);
}

Tensor nanquantile(const Tensor &self, const Tensor &q,
                   std::optional<int64_t> dim, bool keepdim,
                   std::string_view interpolation) {
  return at::native::nanquantile(self, checkedPositions(q), dim, keepdim,
                                 interpolation);
}

} // namespace

void torch_ltc::registerQuantiles() {
  registerComposite<quantile>("quantile");
  registerComposite<nanquantile>("nanquantile");
}
