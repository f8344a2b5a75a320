//===- data_assignment.cpp - `tensor.data = value` ------------------------===//
//
// For a tensor of the CPU, the value of `tensor.data` may be any dense CPU
// tensor. For a tensor of device lazy, torch (2.13) requires equal dispatch
// keys. An inference tensor and a tensor with a conjugate or negative bit have
// different keys from those of a parameter.
//
//===----------------------------------------------------------------------===//

#include "eager_semantics/data_assignment.h"

#include "graph/live_tensors.h"

#include <ATen/FunctionalTensorWrapper.h>
#include <ATen/core/LegacyTypeDispatch.h>

using at::Tensor;
using c10::DispatchKey;
using c10::DispatchKeySet;

namespace {

/// The keys in which a value may differ from the tensor.
DispatchKeySet valueKeys() {
  return c10::autograd_dispatch_keyset_with_ADInplaceOrView |
         DispatchKeySet({DispatchKey::Conjugate, DispatchKey::Negative});
}

/// Whether both are dense lazy tensors.
bool isAssignable(const Tensor &tensor, const Tensor &value) {
  namespace functionalization = at::functionalization::impl;
  return tensor.device().is_lazy() && value.device().is_lazy() &&
         functionalization::isFunctionalTensor(tensor) &&
         functionalization::isFunctionalTensor(value) &&
         tensor.key_set() - valueKeys() == value.key_set() - valueKeys();
}

} // namespace

void torch_ltc::assignData(const Tensor &tensor, const Tensor &value) {
  TensorAccess access;
  DispatchKeySet &keys = dispatchKeysOf(*tensor.unsafeGetTensorImpl());
  DispatchKeySet before = keys;
  if (isAssignable(tensor, value))
    keys = value.key_set();
  // Functionalization would compare the wrappers' values.
  at::AutoDispatchSkipFunctionalize onWrappers;
  try {
    tensor.set_data(value);
  } catch (...) {
    keys = before;
    throw;
  }
}
