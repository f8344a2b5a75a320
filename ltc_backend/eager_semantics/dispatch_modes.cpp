//===- dispatch_modes.cpp - Results of ops under a TorchDispatchMode ------===//
//
// A mode's Python code runs below functionalization, and so does the kernel
// that it calls. There, a kernel can't tell whether functionalization requested
// a tensor, which wraps the result, or the user's code, which doesn't.
// `PythonTLSSnapshot` is the first key that an op reaches while there is a mode
// (and only then); results of an op without lazy operands are wrapped here.
//
//===----------------------------------------------------------------------===//

#include "eager_semantics/registration.h"
#include "tracing/boxed_kernels.h"

#include <ATen/FunctionalTensorWrapper.h>
#include <ATen/Functions.h>
#include <ATen/core/PythonFallbackKernel.h>

using namespace torch_ltc;
using c10::DispatchKey;
using c10::OperatorHandle;
using torch::jit::Stack;

namespace {

bool isBare(const c10::IValue &value) {
  if (!value.isTensor())
    return false;
  c10::DispatchKeySet keys = value.toTensor().key_set();
  return keys.has(DispatchKey::Lazy) && !keys.has(DispatchKey::Functionalize) &&
         !keys.has(DispatchKey::Python);
}

/// Wraps torch's own fallback for the key, which the first line implements.
void wrapResults(const OperatorHandle &op, c10::DispatchKeySet keys,
                 Stack *stack) {
  at::impl::MaybeSetTLSOnEntryGuard forModes;
  op.redispatchBoxed(keys & c10::DispatchKeySet(c10::DispatchKeySet::FULL_AFTER,
                                                DispatchKey::PythonTLSSnapshot),
                     stack);
  if (c10::impl::tls_local_dispatch_key_set().excluded_.has(
          DispatchKey::Functionalize))
    return;
  // `lift` wraps a tensor and has a gradient; the mode need not see it.
  c10::impl::ExcludeDispatchKeyGuard withoutModes(c10::DispatchKeySet(
      {DispatchKey::Python, DispatchKey::PythonTLSSnapshot}));
  size_t numResults = op.schema().returns().size();
  for (size_t i = 0; i < numResults; ++i)
    if (c10::IValue &result = torch::jit::peek(*stack, i, numResults);
        isBare(result))
      result = at::lift(result.toTensor());
}

} // namespace

void torch_ltc::registerUnderModes(const c10::OperatorName &op) {
  registerBoxedKernel(
      op, DispatchKey::PythonTLSSnapshot,
      c10::KernelFunction::makeFromBoxedFunction<&wrapResults>());
}
