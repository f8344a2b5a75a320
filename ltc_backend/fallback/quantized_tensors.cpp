//===- quantized_tensors.cpp - Quantised tensors on device lazy -----------===//

#include "fallback/quantized_tensors.h"

#include <ATen/Tensor.h>
#include <ATen/quantized/QTensorImpl.h>

using namespace torch_ltc;
using at::Tensor;

namespace {

/// A tensor's device is its storage's unless it says something else.
class OnDevice final : public at::QTensorImpl {
public:
  OnDevice(const at::Tensor &source, c10::DispatchKey key, c10::Device device)
      : QTensorImpl(c10::Storage(source.storage()), c10::DispatchKeySet(key),
                    source.dtype(), at::get_qtensorimpl(source)->quantizer()) {
    device_opt_ = device;
    set_sizes_and_strides(source.sizes(), source.strides(),
                          source.storage_offset());
  }
};

} // namespace

Tensor torch_ltc::lazyQuantized(const Tensor &cpu) {
  return at::detail::make_tensor<OnDevice>(cpu, c10::DispatchKey::QuantizedLazy,
                                           c10::Device(c10::kLazy, 0));
}

Tensor torch_ltc::cpuQuantized(const Tensor &lazy) {
  return at::detail::make_tensor<OnDevice>(lazy, c10::DispatchKey::QuantizedCPU,
                                           c10::Device(c10::kCPU));
}

void torch_ltc::storeQuantized(const Tensor &lazy, const Tensor &cpu) {
  at::QTensorImpl *impl = at::get_qtensorimpl(lazy);
  impl->set_quantizer_(at::get_qtensorimpl(cpu)->quantizer());
  impl->set_sizes_and_strides(cpu.sizes(), cpu.strides(), cpu.storage_offset());
}
