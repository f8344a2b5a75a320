//===- convolution.cpp - Convolutions by PyTorch's inner op ---------------===//
//
// Traces `_convolution`, which TorchScript and exported programs call, as
// `convolution`. PyTorch's implementation chooses a library's kernel, and has
// none for this device.
//
//===----------------------------------------------------------------------===//

#include "ops/registration.h"
#include "tracing/boxed_kernels.h"
#include "tracing/trace.h"

#include <ATen/Context.h>
#include <ATen/TracerMode.h>

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

namespace {

/// Wraps `convolution` at Functionalize. TorchScript's tracer must record the
/// inner op instead, which PyTorch's implementation of `convolution` calls.
class RecordedConvolution final : public KernelAround {
public:
  explicit RecordedConvolution(c10::SafeKernelFunction previous)
      : KernelAround(std::move(previous)),
        inner(findOp({"aten::_convolution", ""})) {}

  void operator()(const c10::OperatorHandle &op, c10::DispatchKeySet keys,
                  torch::jit::Stack *stack) {
    if (!at::tracer::impl::is_dispatch_enabled())
      return previous.callBoxed(op, keys, stack);
    const at::Context &context = at::globalContext();
    torch::jit::push(*stack, context.benchmarkCuDNN(),
                     context.deterministicCuDNN(), context.userEnabledCuDNN(),
                     /*allow_tf32=*/true);
    inner.callBoxed(stack);
  }

private:
  c10::OperatorHandle inner;
};

} // namespace

void torch_ltc::registerConvolutionKernels(torch::Library &library) {
  library.impl("_convolution", TORCH_FN(convolution));
  registerAround<RecordedConvolution>(findOp({"aten::convolution", ""}),
                                      c10::DispatchKey::Functionalize);
}
