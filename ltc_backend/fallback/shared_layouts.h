//===- shared_layouts.h - Quantized and nested tensors ----------*- C++ -*-===//
//
// A quantized or (strided) nested tensor on device lazy is torch's own
// QTensorImpl or NestedTensorImpl with the memory of a CPU tensor: ops on it
// run immediately on the CPU, on a CPU tensor that shares this memory. So views
// and writes are eager's own. It has no functional wrapper: functionalization
// (torch 2.13) models neither.
//
//===----------------------------------------------------------------------===//

#ifndef TORCH_LTC_FALLBACK_SHARED_LAYOUTS_H
#define TORCH_LTC_FALLBACK_SHARED_LAYOUTS_H

#include <ATen/core/Tensor.h>

namespace torch_ltc {

/// Quantized or nested (a jagged one is a Python subclass), on any device.
inline bool hasSharedLayout(const at::Tensor &tensor) {
  return tensor.defined() &&
         (tensor.is_quantized() ||
          (tensor.is_nested() &&
           !tensor.key_set().has(c10::DispatchKey::Python)));
}

/// `hook` is called once, before the first such tensor on device lazy is
/// created.
void onFirstSharedTensor(void (*hook)());

/// The tensor on device lazy that shares the memory of a CPU tensor.
at::Tensor sharedOnLazy(const at::Tensor &cpu);

/// The reverse.
at::Tensor sharedOnCpu(const at::Tensor &lazy);

/// Gives `lazy` the sizes and the quantizer that an op gave to `cpu`, its
/// counterpart.
void storeShared(const at::Tensor &lazy, const at::Tensor &cpu);

} // namespace torch_ltc

#endif // TORCH_LTC_FALLBACK_SHARED_LAYOUTS_H
