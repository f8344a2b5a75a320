//===- shared_layouts.h - Quantized and nested tensors ----------*- C++ -*-===//
//
// A quantized or (strided) nested tensor on device lazy is torch's own
// QTensorImpl or NestedTensorImpl with the memory of a CPU tensor: ops on it
// run immediately on the CPU, on a CPU tensor that shares this memory. Views
// and writes are therefore eager's. Such a tensor has no functional wrapper:
// functionalization (torch 2.13) doesn't model these layouts.
//
//===----------------------------------------------------------------------===//

#ifndef TORCH_LTC_FALLBACK_SHARED_LAYOUTS_H
#define TORCH_LTC_FALLBACK_SHARED_LAYOUTS_H

#include <ATen/core/Tensor.h>

namespace torch_ltc {

/// Whether the tensor is quantized or nested, on any device. False for jagged
/// nested tensors, which are a Python subclass.
inline bool hasSharedLayout(const at::Tensor &tensor) {
  return tensor.defined() &&
         (tensor.is_quantized() ||
          (tensor.is_nested() &&
           !tensor.key_set().has(c10::DispatchKey::Python)));
}

/// Sets a hook that is called once, before the first such tensor on device lazy
/// is created.
void onFirstSharedTensor(void (*hook)());

/// Creates a tensor on device lazy that shares the memory of a CPU tensor.
at::Tensor sharedOnLazy(const at::Tensor &cpu);

/// Creates a CPU tensor that shares the memory of a tensor on device lazy.
at::Tensor sharedOnCpu(const at::Tensor &lazy);

/// Copies the sizes and the quantizer, which an op may have changed, from `cpu`
/// to `lazy`, the tensor that shares its memory.
void storeShared(const at::Tensor &lazy, const at::Tensor &cpu);

} // namespace torch_ltc

#endif // TORCH_LTC_FALLBACK_SHARED_LAYOUTS_H
