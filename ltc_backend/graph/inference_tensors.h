//===- inference_tensors.h - Inference tensors of device lazy ---*- C++ -*-===//
//
// A tensor that an op creates in inference mode is an inference tensor, unless
// it is a view of a normal one; a view of an inference tensor is one in any
// mode. A functional wrapper is an inference tensor if its value is. Values of
// views are recomputed after writes, in the mode of the reader, and written
// bases are computed from the values of their views: both have the kind of
// their operand.
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

/// Whether functionalization uses it to compute a written base:
/// `slice_scatter`, but not `masked_scatter`.
inline bool isInverseOfView(std::string_view opName) {
  for (std::string_view inverse : {"select_scatter", "slice_scatter",
                                   "diagonal_scatter", "as_strided_scatter"})
    if (opName.find(inverse) != std::string_view::npos)
      return true;
  return false;
}

/// Whether functionalization uses it to compute a view's value: `slice_copy`,
/// but not `_to_copy` or `index_copy`.
inline bool isCopyOfView(std::string_view opName) {
  return opName.ends_with("_copy") && opName != "aten::_to_copy" &&
         opName != "aten::index_copy" && opName != "aten::lift_fresh_copy";
}

/// While it exists, results count as new memory. Otherwise they would be marked
/// as normal tensors (live_tensors.cpp), because torch's factories exclude
/// ADInplaceOrView, as its kernels for views do.
class NewMemory {
public:
  NewMemory() {
    if (c10::InferenceMode::is_enabled())
      begin();
  }

  /// For an op that may create memory, as `zeros` and `zeros_like` do.
  NewMemory(std::string_view opName, bool hasTensorArgument) {
    if (c10::InferenceMode::is_enabled() &&
        (!hasTensorArgument || opName.find("_like") != std::string_view::npos))
      begin();
  }

private:
  void begin() {
    const c10::impl::LocalDispatchKeySet tls =
        c10::impl::tls_local_dispatch_key_set();
    keys.emplace(tls.included_,
                 tls.excluded_.remove(c10::DispatchKey::ADInplaceOrView));
  }

  std::optional<c10::impl::ForceDispatchKeyGuard> keys;
};

/// While it exists, results of the op are created in the appropriate mode.
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
    if (self.is_inference())
      memory.emplace();
  }

private:
  std::optional<c10::InferenceMode> mode;
  std::optional<NewMemory> memory;
};

} // namespace torch_ltc

#endif // TORCH_LTC_GRAPH_INFERENCE_TENSORS_H
