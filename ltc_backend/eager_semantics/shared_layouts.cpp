//===- shared_layouts.cpp - Kernels of quantized and nested tensors -------===//
//
// Every op on a quantized or nested tensor runs on the CPU
// (fallback/shared_layouts.h).
//
//===----------------------------------------------------------------------===//

#include "fallback/shared_layouts.h"
#include "eager_semantics/registration.h"
#include "fallback/eager_fallback.h"
#include "tracing/boxed_kernels.h"

#include <ATen/Functions.h>

using namespace torch_ltc;
using c10::DispatchKey;
using c10::IValue;
using c10::OperatorHandle;
using torch::jit::Stack;

namespace {

void sharedKernel(const OperatorHandle &op, Stack *stack) {
  runSharedFallback(op, *stack);
}

/// Wraps `_to_copy`, so that a move to or from this device doesn't run as a
/// fallback.
class Move final : public KernelAround {
public:
  using KernelAround::KernelAround;

  void operator()(const OperatorHandle &op, c10::DispatchKeySet keys,
                  Stack *stack) {
    IValue &self = torch::jit::peek(*stack, 0, kNumArguments);
    IValue &device = torch::jit::peek(*stack, kDevice, kNumArguments);
    bool isLazy = self.toTensor().device().is_lazy();
    bool toLazy = device.isNone() ? isLazy : device.toDevice().is_lazy();
    if (!isLazy && !toLazy)
      return previous.callBoxed(op, keys, stack);
    if (isLazy)
      self = sharedOnCpu(self.toTensor());
    if (toLazy)
      device = c10::Device(c10::kCPU);
    const at::Tensor &source = self.toTensor();
    if (source.is_nested() && isSameDType(source, *stack)) {
      // `_to_copy` rejects nested tensors with transposed parts.
      at::Tensor copy = source.clone();
      torch::jit::drop(*stack, kNumArguments);
      stack->emplace_back(std::move(copy));
    } else {
      op.callBoxed(stack);
    }
    if (!toLazy)
      return;
    stack->back() = sharedOnLazy(stack->back().toTensor());
  }

private:
  static constexpr size_t kNumArguments = 7, kDType = 1, kDevice = 3;

  static bool isSameDType(const at::Tensor &self, const Stack &stack) {
    const IValue &dtype = torch::jit::peek(stack, kDType, kNumArguments);
    return dtype.isNone() || dtype.toScalarType() == self.scalar_type();
  }
};

c10::KernelFunction makeKernel() {
  return c10::KernelFunction::makeFromBoxedFunction<&sharedKernel>();
}

struct Keys {
  DispatchKey lazy, cpu;
};

constexpr Keys sharedKeys[] = {
    {DispatchKey::QuantizedLazy, DispatchKey::QuantizedCPU},
    {DispatchKey::NestedTensorLazy, DispatchKey::NestedTensorCPU}};

/// Whether a composite kernel of the op would take precedence over the backend
/// fallback, which must then be registered for the op by name. The op may also
/// have a separate kernel on the CPU (for example, `linear`).
bool hidesFallback(const OperatorHandle &op, const Keys &keys) {
  return !op.hasKernelForDispatchKey(keys.lazy) &&
         (op.hasKernelForDispatchKey(keys.cpu) ||
          op.hasKernelForDispatchKey(DispatchKey::CompositeExplicitAutograd) ||
          op.hasKernelForDispatchKey(
              DispatchKey::CompositeExplicitAutogradNonFunctional));
}

} // namespace

static void registerSharedFallbacks() {
  registerPassedFunctionalization();
  const AtenOps ops = atenOps();
  for (const Keys &keys : sharedKeys) {
    auto *library = new torch::Library(torch::Library::IMPL, "_", keys.lazy,
                                       __FILE__, __LINE__);
    library->fallback(
        torch::CppFunction::makeFromBoxedFunction<&sharedKernel>());
    for (const OperatorHandle &op : ops)
      if (hidesFallback(op, keys))
        registerBoxedKernel(op.operator_name(), keys.lazy, makeKernel());
  }
}

void torch_ltc::registerSharedFactories() {
  onFirstSharedTensor(registerSharedFallbacks);
  for (const char *name : {"aten::_empty_affine_quantized",
                           "aten::_empty_per_channel_affine_quantized",
                           "aten::empty.memory_format", "aten::empty_strided"})
    registerBoxedKernel(torch::jit::parseName(name), DispatchKey::QuantizedLazy,
                        makeKernel());
  SilentRegistration silence; // torch has a kernel at key NestedTensorCPU
  const OperatorHandle move = findOp({"aten::_to_copy", ""});
  for (DispatchKey key : {DispatchKey::QuantizedLazy, DispatchKey::QuantizedCPU,
                          DispatchKey::NestedTensorCPU})
    registerAround<Move>(move, key);
  // The wrapped kernel doesn't support nested tensors, but is never called for
  // lazy ones.
  registerBoxedKernel(
      move.operator_name(), DispatchKey::NestedTensorLazy,
      c10::KernelFunction::makeFromBoxedFunctor(std::make_unique<Move>(
          move.getComputedKernelForDispatchKey(DispatchKey::QuantizedLazy))));
}
