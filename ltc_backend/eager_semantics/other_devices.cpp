//===- other_devices.cpp - Ops of lazy tensors on other devices -----------===//
//
// Results that aren't on device lazy:
// Functionalization wraps every result of an op on a wrapper (torch 2.13),
// including that of `x.new_zeros(3, device="cpu")`, and the memory of a CPU
// tensor inside a wrapper can't be accessed. Such an op doesn't read its
// tensor's elements, so it is called with an empty tensor on the other device.
//
// CPU tensors that are filled with the value of a lazy scalar: as for a scalar
// on CUDA, the value is read.
//
//===----------------------------------------------------------------------===//

#include "eager_semantics/registration.h"
#include "graph/live_tensors.h"
#include "tracing/boxed_kernels.h"
#include "tracing/writing_call.h"

#include <ATen/Functions.h>
#include <ATen/core/stack.h>

using namespace torch_ltc;
using c10::OperatorHandle;

namespace {

/// The kernel at key Functionalize of an op whose result may be on another
/// device.
class OnOtherDevice final : public KernelAround {
public:
  OnOtherDevice(int deviceArgument, c10::SafeKernelFunction previous)
      : KernelAround(std::move(previous)),
        deviceArgument(size_t(deviceArgument)) {}

  void operator()(const OperatorHandle &op, c10::DispatchKeySet keys,
                  torch::jit::Stack *stack) {
    size_t begin = stack->size() - op.schema().arguments().size();
    c10::IValue &self = (*stack)[begin];
    const c10::IValue &device = (*stack)[begin + deviceArgument];
    if (device.isNone() || device.toDevice().is_lazy() ||
        !isLazyWrapper(self.toTensor())) {
      previous.callBoxed(op, keys, stack);
      // The result may come from a factory, whose wrapper torch's kernel
      // created.
      const at::Tensor &result = stack->back().toTensor();
      if (isLazyWrapper(result))
        useOwnVersionCounter(result);
      return;
    }
    const at::Tensor &like = self.toTensor();
    self = at::empty_strided(like.sizes(), like.strides(),
                             like.options().device(device.toDevice()));
    op.callBoxed(stack);
  }

private:
  size_t deviceArgument;
};

/// The kernel at key Functionalize of an op that fills elements of its first
/// tensor with a scalar tensor.
class FillOfCpuTensor final : public KernelAround {
public:
  FillOfCpuTensor(int valueArgument, c10::SafeKernelFunction previous)
      : KernelAround(std::move(previous)),
        valueArgument(size_t(valueArgument)) {}

  void operator()(const OperatorHandle &op, c10::DispatchKeySet keys,
                  torch::jit::Stack *stack) {
    size_t begin = stack->size() - op.schema().arguments().size();
    const at::Tensor &self = (*stack)[begin].toTensor();
    c10::IValue &value = (*stack)[begin + valueArgument];
    if (!self.is_cpu() || !isLazyWrapper(value.toTensor()) ||
        value.toTensor().dim() != 0)
      return previous.callBoxed(op, keys, stack);
    value = value.toTensor().cpu();
    op.callBoxed(stack);
  }

private:
  size_t valueArgument;
};

/// Whether the op makes a new tensor with some properties of its first
/// argument (`new_zeros`, `zeros_like`). Unlike `_to_copy`, it copies nothing.
bool onlyLooksLikeItsTensor(const c10::FunctionSchema &schema) {
  auto takes = [&](const char *name) {
    return schema.argumentIndexWithName(name).has_value();
  };
  return schema.argumentIndexWithName("self") == 0 && takes("pin_memory") &&
         !takes("non_blocking");
}

} // namespace

void torch_ltc::registerOtherDevices(const AtenOps &ops) {
  SilentRegistration silence;
  for (const OperatorHandle &op : ops) {
    std::optional<int> device = op.schema().argumentIndexWithName("device");
    if (device && onlyLooksLikeItsTensor(op.schema()) &&
        !op.hasKernelForDispatchKey(
            c10::DispatchKey::CompositeImplicitAutograd))
      registerAround<OnOtherDevice>(op, c10::DispatchKey::Functionalize,
                                    *device);
  }
}

void torch_ltc::registerFillsOfCpuTensors() {
  SilentRegistration silence;
  constexpr auto key = c10::DispatchKey::Functionalize;
  registerAround<FillOfCpuTensor>(findOp({"aten::fill_", "Tensor"}), key,
                                  /*valueArgument=*/1);
  registerAround<FillOfCpuTensor>(findOp({"aten::index_fill_", "int_Tensor"}),
                                  key, /*valueArgument=*/3);
  registerAround<FillOfCpuTensor>(findOp({"aten::index_put_", ""}), key,
                                  /*valueArgument=*/2);
}
