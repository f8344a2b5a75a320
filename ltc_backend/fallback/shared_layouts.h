//===- shared_layouts.h - Quantised and nested tensors ----------*- C++ -*-===//
//
// A quantised or (strided) nested tensor on device lazy is torch's own
// QTensorImpl or NestedTensorImpl whose memory is a CPU tensor's: ops on it run
// on the CPU, at once, on a tensor of the CPU that shares this memory. So views
// and writes are eager's own. It has no functional wrapper: functionalisation
// (torch 2.13) models neither.
//
//===----------------------------------------------------------------------===//

#ifndef TORCH_LTC_FALLBACK_SHARED_LAYOUTS_H
#define TORCH_LTC_FALLBACK_SHARED_LAYOUTS_H

#include <ATen/core/Tensor.h>

namespace torch_ltc {

/// Quantised or nested (a jagged one is a tensor of Python), on any device.
inline bool hasSharedLayout(const at::Tensor &tensor) {
  return tensor.defined() &&
         (tensor.is_quantized() ||
          (tensor.is_nested() &&
           !tensor.key_set().has(c10::DispatchKey::Python)));
}

/// `hook` is called once, before the first such tensor on device lazy is made.
void onFirstSharedTensor(void (*hook)());

/// The tensor on device lazy that shares the memory of one on the CPU.
at::Tensor sharedOnLazy(const at::Tensor &cpu);

/// The other way.
at::Tensor sharedOnCpu(const at::Tensor &lazy);

/// Gives `lazy` the sizes and the quantiser that an op gave `cpu`, which stood
/// for it.
void storeShared(const at::Tensor &lazy, const at::Tensor &cpu);

} // namespace torch_ltc

#endif // TORCH_LTC_FALLBACK_SHARED_LAYOUTS_H
