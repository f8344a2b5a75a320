//===- convolution.cpp - Convolutions by PyTorch's inner op ---------------===//
//
// TorchScript and exported programs call `_convolution`. PyTorch's
// implementation chooses a library's kernel, and has none for this device.
//
//===----------------------------------------------------------------------===//

#include "ops/registration.h"
#include "tracing/trace.h"

using namespace torch_ltc;

static at::Tensor convolution(const at::Tensor &input, const at::Tensor &weight,
                              const std::optional<at::Tensor> &bias,
                              c10::SymIntArrayRef stride,
                              c10::SymIntArrayRef padding,
                              c10::SymIntArrayRef dilation, bool transposed,
                              c10::SymIntArrayRef outputPadding,
                              c10::SymInt groups, bool, bool, bool, bool) {
  return traceOp("aten::convolution",
                 {input, weight, bias, C10_AS_INTARRAYREF_SLOW(stride),
                  C10_AS_INTARRAYREF_SLOW(padding),
                  C10_AS_INTARRAYREF_SLOW(dilation), transposed,
                  C10_AS_INTARRAYREF_SLOW(outputPadding),
                  groups.guard_int(__FILE__, __LINE__)});
}

void torch_ltc::registerConvolutionKernels(torch::Library &library) {
  library.impl("_convolution", TORCH_FN(convolution));
}
