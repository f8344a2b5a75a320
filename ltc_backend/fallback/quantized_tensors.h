//===- quantized_tensors.h - Quantised tensors on device lazy ---*- C++ -*-===//
//
// A quantised tensor on device lazy is a QTensorImpl whose memory is a CPU
// tensor's: ops on it run on the CPU, at once, on a tensor of the CPU that
// shares this memory. So views and writes are eager's own. It has no functional
// wrapper: functionalisation (torch 2.13) doesn't model one.
//
//===----------------------------------------------------------------------===//

#ifndef TORCH_LTC_FALLBACK_QUANTIZED_TENSORS_H
#define TORCH_LTC_FALLBACK_QUANTIZED_TENSORS_H

#include <ATen/core/Tensor.h>

namespace torch_ltc {

/// On any device.
inline bool isQuantized(const at::Tensor &tensor) {
  return tensor.defined() && tensor.is_quantized();
}

/// The tensor on device lazy that shares the memory of one on the CPU.
at::Tensor lazyQuantized(const at::Tensor &cpu);

/// The other way.
at::Tensor cpuQuantized(const at::Tensor &lazy);

/// Gives `lazy` the sizes and the quantiser that an op gave `cpu`, which stood
/// for it.
void storeQuantized(const at::Tensor &lazy, const at::Tensor &cpu);

} // namespace torch_ltc

#endif // TORCH_LTC_FALLBACK_QUANTIZED_TENSORS_H
