//===- histogram.cpp - Histograms of integers -----------------------------===//
//
// PyTorch's CPU kernel of histc (torch 2.13) only counts floating-point
// numbers. On every other device, libraries also count integers with histc (for
// example, expert indices in a mixture of experts), and the counts have the
// operand's dtype. So device lazy counts integers as doubles and casts the
// counts.
//
//===----------------------------------------------------------------------===//

#include "ops/registration.h"
#include "tracing/trace.h"

using namespace torch_ltc;
using c10::IValue;

static at::Tensor histc(const at::Tensor &self, int64_t bins,
                        const at::Scalar &min, const at::Scalar &max) {
  at::ScalarType dtype = self.scalar_type();
  if (!c10::isIntegralType(dtype, /*includeBool=*/false))
    return traceOp("aten::histc", {self, bins, min, max});
  at::Tensor numbers =
      traceOp("aten::_to_copy", {self, IValue(int64_t(at::kDouble))});
  at::Tensor counts = traceOp("aten::histc", {numbers, bins, min, max});
  return traceOp("aten::_to_copy", {counts, IValue(int64_t(dtype))});
}

void torch_ltc::registerHistogramKernels(torch::Library &library) {
  library.impl("histc", TORCH_FN(histc));
}
