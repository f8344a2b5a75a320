//===- shared_layouts.cpp - Quantized and nested tensors ------------------===//

#include "fallback/shared_layouts.h"

#include <ATen/NestedTensorImpl.h>
#include <ATen/Tensor.h>
#include <ATen/quantized/QTensorImpl.h>

#include <mutex>

using namespace torch_ltc;
using at::Tensor;
using c10::DispatchKey;

namespace {

/// A quantized tensor that shares the storage of `source`, but reports `device`
/// instead of the storage's device.
class Quantized final : public at::QTensorImpl {
public:
  Quantized(const Tensor &source, DispatchKey key, c10::Device device)
      : QTensorImpl(c10::Storage(source.storage()), c10::DispatchKeySet(key),
                    source.dtype(), at::get_qtensorimpl(source)->quantizer()) {
    device_opt_ = device;
    set_sizes_and_strides(source.sizes(), source.strides(),
                          source.storage_offset());
  }
};

class Nested final : public at::native::NestedTensorImpl {
public:
  Nested(const Tensor &source, DispatchKey key, c10::Device device)
      : Nested(at::native::get_nested_tensor_impl(source), key, device) {}

private:
  Nested(const NestedTensorImpl *source, DispatchKey key, c10::Device device)
      : NestedTensorImpl(
            c10::Storage(source->storage()),
            c10::DispatchKeySet({key, DispatchKey::AutogradNestedTensor}),
            source->dtype(), source->get_nested_sizes(),
            source->get_nested_strides(), source->get_storage_offsets()) {
    device_opt_ = device;
  }
};

} // namespace

static void (*firstSharedTensorHook)() = nullptr;

void torch_ltc::onFirstSharedTensor(void (*hook)()) {
  firstSharedTensorHook = hook;
}

Tensor torch_ltc::sharedOnLazy(const Tensor &cpu) {
  static std::once_flag first;
  std::call_once(first, firstSharedTensorHook);
  c10::Device device(c10::kLazy, 0);
  if (cpu.is_nested())
    return at::detail::make_tensor<Nested>(cpu, DispatchKey::NestedTensorLazy,
                                           device);
  return at::detail::make_tensor<Quantized>(cpu, DispatchKey::QuantizedLazy,
                                            device);
}

Tensor torch_ltc::sharedOnCpu(const Tensor &lazy) {
  c10::Device device(c10::kCPU);
  if (lazy.is_nested())
    return at::detail::make_tensor<Nested>(lazy, DispatchKey::NestedTensorCPU,
                                           device);
  return at::detail::make_tensor<Quantized>(lazy, DispatchKey::QuantizedCPU,
                                            device);
}

void torch_ltc::storeShared(const Tensor &lazy, const Tensor &cpu) {
  if (lazy.is_nested())
    return; // only its elements can be written
  at::QTensorImpl *impl = at::get_qtensorimpl(lazy);
  impl->set_quantizer_(at::get_qtensorimpl(cpu)->quantizer());
  impl->set_sizes_and_strides(cpu.sizes(), cpu.strides(), cpu.storage_offset());
}
