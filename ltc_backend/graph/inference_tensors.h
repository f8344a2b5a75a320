//===- inference_tensors.h - Inference tensors of device lazy ---*- C++ -*-===//
//
// What an op makes in inference mode is an inference tensor, unless it is a
// view of a normal one; a view of an inference tensor is one in any mode. A
// functional wrapper is what the value that it is made for is. Values of views
// are computed again after writes, in the mode of whoever reads them, and
// written bases from the values of their views: both are what their operand is.
//
//===----------------------------------------------------------------------===//

#ifndef TORCH_LTC_GRAPH_INFERENCE_TENSORS_H
#define TORCH_LTC_GRAPH_INFERENCE_TENSORS_H

#include <ATen/core/ivalue.h>
#include <c10/core/InferenceMode.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include <optional>
#include <string>
#include <string_view>

namespace torch_ltc {

/// Whether functionalisation makes a written base by it: `slice_scatter`, but
/// not `masked_scatter`.
inline bool isInverseOfView(std::string_view opName) {
  for (std::string_view inverse : {"select_scatter", "slice_scatter",
                                   "diagonal_scatter", "as_strided_scatter"})
    if (opName.find(inverse) != std::string_view::npos)
      return true;
  return false;
}

/// Whether functionalisation makes a view's value by it: `slice_copy`, but not
/// `_to_copy` or `index_copy`.
inline bool isCopyOfView(std::string_view opName) {
  return opName.ends_with("_copy") && opName != "aten::_to_copy" &&
         opName != "aten::index_copy" && opName != "aten::lift_fresh_copy";
}

/// While it lives, what is made is new memory, by whatever way the call came:
/// torch's factories exclude ADInplaceOrView as its kernels for views do, which
/// says that results are normal tensors (live_tensors.cpp).
class NewMemory {
public:
  explicit NewMemory(bool isNew = true) {
    if (!isNew || !c10::InferenceMode::is_enabled())
      return;
    const c10::impl::LocalDispatchKeySet tls =
        c10::impl::tls_local_dispatch_key_set();
    keys.emplace(tls.included_,
                 tls.excluded_.remove(c10::DispatchKey::ADInplaceOrView));
  }

private:
  std::optional<c10::impl::ForceDispatchKeyGuard> keys;
};

/// Whether the op makes memory: `zeros`, `zeros_like`.
inline bool makesMemory(std::string_view opName, bool hasTensorArgument) {
  return !hasTensorArgument || opName.find("_like") != std::string_view::npos;
}

/// While it lives, results of the op are made in the mode that fits them.
class ModeOfResults {
public:
  ModeOfResults(const std::string &opName, bool isView,
                c10::ArrayRef<c10::IValue> arguments) {
    if (arguments.empty() || !arguments[0].isTensor())
      return;
    const at::Tensor &self = arguments[0].toTensor();
    bool isEnabled = c10::InferenceMode::is_enabled();
    if (!self.defined() || (!isEnabled && !self.is_inference()))
      return;
    if (!isView && !isInverseOfView(opName))
      return;
    if (self.is_inference() != isEnabled)
      mode.emplace(self.is_inference());
    if (!self.is_inference())
      return;
    // Which says that results are normal tensors (live_tensors.cpp).
    const c10::impl::LocalDispatchKeySet tls =
        c10::impl::tls_local_dispatch_key_set();
    keys.emplace(tls.included_,
                 tls.excluded_.remove(c10::DispatchKey::ADInplaceOrView));
  }

private:
  std::optional<c10::InferenceMode> mode;
  std::optional<c10::impl::ForceDispatchKeyGuard> keys;
};

} // namespace torch_ltc

#endif // TORCH_LTC_GRAPH_INFERENCE_TENSORS_H
