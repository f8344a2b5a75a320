//===- quantized_layouts.cpp - Kernels of quantised tensors ---------------===//
//
// Every op of a quantised tensor runs on the CPU
// (fallback/quantized_tensors.h).
//
//===----------------------------------------------------------------------===//

#include "fallback/eager_fallback.h"
#include "fallback/quantized_tensors.h"
#include "tracer/boxed_kernels.h"
#include "tracer/registration.h"

#include <ATen/Functions.h>

using namespace torch_ltc;
using c10::DispatchKey;
using c10::IValue;
using c10::OperatorHandle;
using torch::jit::Stack;

namespace {

void quantizedKernel(const OperatorHandle &op, Stack *stack) {
  registerKernels(); // the device's first tensor may be one of these
  runQuantizedFallback(op, *stack);
}

/// A move to or from this device is no fallback.
class Move final : public c10::OperatorKernel {
public:
  explicit Move(c10::SafeKernelFunction previous)
      : previous(std::move(previous)) {}

  void operator()(const OperatorHandle &op, c10::DispatchKeySet keys,
                  Stack *stack) {
    constexpr size_t kNumArguments = 7, kDevice = 3;
    IValue &self = torch::jit::peek(*stack, 0, kNumArguments);
    IValue &device = torch::jit::peek(*stack, kDevice, kNumArguments);
    bool isLazy = self.toTensor().device().is_lazy();
    bool toLazy = device.isNone() ? isLazy : device.toDevice().is_lazy();
    if (!isLazy && !toLazy)
      return previous.callBoxed(op, keys, stack);
    if (isLazy)
      self = cpuQuantized(self.toTensor());
    if (toLazy)
      device = c10::Device(c10::kCPU);
    op.callBoxed(stack);
    if (!toLazy)
      return;
    registerKernels();
    stack->back() = lazyQuantized(stack->back().toTensor());
  }

private:
  c10::SafeKernelFunction previous;
};

c10::KernelFunction makeKernel() {
  return c10::KernelFunction::makeFromBoxedFunction<&quantizedKernel>();
}

} // namespace

void torch_ltc::registerQuantizedFactories() {
  for (const char *name : {"aten::_empty_affine_quantized",
                           "aten::_empty_per_channel_affine_quantized",
                           "aten::empty.memory_format", "aten::empty_strided"})
    registerBoxedKernel(torch::jit::parseName(name), DispatchKey::QuantizedLazy,
                        makeKernel());
  for (DispatchKey key :
       {DispatchKey::QuantizedLazy, DispatchKey::QuantizedCPU})
    registerAround<Move>(findOp({"aten::_to_copy", ""}), key);
}

void torch_ltc::registerQuantizedFallbacks(const AtenOps &ops) {
  auto *library =
      new torch::Library(torch::Library::IMPL, "_", DispatchKey::QuantizedLazy,
                         __FILE__, __LINE__);
  library->fallback(
      torch::CppFunction::makeFromBoxedFunction<&quantizedKernel>());
  // Kernels of composite ops would win over a fallback.
  for (const OperatorHandle &op : ops)
    if (!op.hasKernelForDispatchKey(DispatchKey::QuantizedLazy) &&
        (op.hasKernelForDispatchKey(DispatchKey::CompositeExplicitAutograd) ||
         op.hasKernelForDispatchKey(
             DispatchKey::CompositeExplicitAutogradNonFunctional)))
      registerBoxedKernel(op.operator_name(), DispatchKey::QuantizedLazy,
                          makeKernel());
}
