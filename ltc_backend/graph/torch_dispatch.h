//===- torch_dispatch.h - Whether __torch_dispatch__ is running -*- C++ -*-===//

#ifndef TORCH_LTC_GRAPH_TORCH_DISPATCH_H
#define TORCH_LTC_GRAPH_TORCH_DISPATCH_H

#include <ATen/core/Tensor.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <c10/core/impl/TorchDispatchModeTLS.h>

namespace torch_ltc {

/// Whether functionalization, which precedes the Lazy key, was disabled by
/// torch's Python key and not by itself.
inline bool isInsideTorchDispatch() {
  c10::DispatchKeySet excluded =
      c10::impl::tls_local_dispatch_key_set().excluded_;
  return excluded.has(c10::DispatchKey::PythonTLSSnapshot) &&
         excluded.has(c10::DispatchKey::Functionalize);
}

/// Whether a TorchDispatchMode gets the call of an op with these keys next,
/// unless a kernel before the Python key handles it. False while torch itself
/// functionalizes a program (torch.compile, torch.export,
/// `torch.func.functionalize`), which must wrap the call's results.
inline bool isBeforeMode(c10::DispatchKeySet keys) {
  return keys.has(c10::DispatchKey::Python) &&
         c10::impl::dispatch_mode_enabled() &&
         !c10::impl::tls_is_dispatch_key_included(
             c10::DispatchKey::Functionalize);
}

/// Whether the tensor's class has a `__torch_dispatch__`.
inline bool hasTorchDispatch(const at::Tensor &tensor) {
  return tensor.key_set().has(c10::DispatchKey::Python);
}

/// Whether the tensor's class has a `__torch_dispatch__`, and the tensor isn't
/// a functional wrapper. (`as_subclass` makes a functional wrapper of such a
/// class.)
inline bool isSubclass(const at::Tensor &tensor) {
  return hasTorchDispatch(tensor) &&
         !tensor.key_set().has(c10::DispatchKey::Functionalize);
}

} // namespace torch_ltc

#endif // TORCH_LTC_GRAPH_TORCH_DISPATCH_H
