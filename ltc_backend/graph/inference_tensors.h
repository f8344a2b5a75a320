//===- inference_tensors.h - Inference tensors of device lazy ---*- C++ -*-===//
//
// A tensor that an op creates in inference mode is an inference tensor, unless
// it is a view of a normal one; a view of an inference tensor is an inference
// tensor in any mode. A functional wrapper is an inference tensor if its value
// is.
//
// After a write, functionalization computes the values of other views, and of
// the base, when they are read. The reader may be in a different mode than the
// code that created the views, so such a value is an inference tensor if its
// operand is an inference tensor.
//
//===----------------------------------------------------------------------===//

#ifndef TORCH_LTC_GRAPH_INFERENCE_TENSORS_H
#define TORCH_LTC_GRAPH_INFERENCE_TENSORS_H

#include "ir/op_record.h"

#include <ATen/core/ivalue.h>
#include <c10/core/InferenceMode.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include <algorithm>
#include <optional>

namespace torch_ltc {

/// Whether the op computes a view's value or, for functionalization, a written
/// base from a view's value. False for ops with several results
/// (`unbind_copy`): functionalization computes each view with a separate op.
inline bool isViewOrInverse(const OpRecord &record) {
  switch (record.shapeRule) {
  case ShapeRule::select_scatterShape:
  case ShapeRule::slice_scatterShape:
  case ShapeRule::diagonal_scatterShape:
  case ShapeRule::as_strided_scatterShape:
    return true;
  default:
    return record.strideRule == StrideRule::View;
  }
}

/// Whether `op`, which may have several results, copies a view or computes a
/// written base. `record`: the op's row of the op table, or null.
inline bool isViewOrInverse(const c10::OperatorHandle &op,
                            const OpRecord *record) {
  return op.hasTag(at::Tag::view_copy) || (record && isViewOrInverse(*record));
}

/// While such an object exists in inference mode, results are inference
/// tensors. torch's factories exclude ADInplaceOrView, like this key's kernels
/// for views, so `makeTensor` (live_tensors.cpp) would create normal tensors.
class NewMemory {
public:
  NewMemory() {
    if (c10::InferenceMode::is_enabled())
      begin();
  }

  /// Has an effect only if the op creates memory, because it has no tensor
  /// argument (`zeros`), or only uses the sizes of its tensor (`zeros_like`).
  explicit NewMemory(const OpRecord &record) {
    if (c10::InferenceMode::is_enabled() &&
        (!record.hasTensorArgument || record.updates.empty()))
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

/// While such an object exists, results of an op that copies a view, or of a
/// view's inverse, are created in the mode of the op's operand.
class ModeOfResults {
public:
  ModeOfResults(bool isViewOrInverse, c10::ArrayRef<c10::IValue> arguments) {
    if (isViewOrInverse && !arguments.empty() && arguments[0].isTensor())
      begin(arguments[0].toTensor());
  }

  explicit ModeOfResults(const at::Tensor &self) { begin(self); }

private:
  void begin(const at::Tensor &self) {
    bool isEnabled = c10::InferenceMode::is_enabled();
    if (!self.defined() || (!isEnabled && !self.is_inference()))
      return;
    if (self.is_inference() != isEnabled)
      mode.emplace(self.is_inference());
    if (self.is_inference())
      memory.emplace();
  }

  std::optional<c10::InferenceMode> mode;
  std::optional<NewMemory> memory;
};

/// While such an object exists in inference mode, results are normal tensors if
/// one of the tensors that the op writes is a normal tensor. Ops that write a
/// list of tensors need this, because torch (2.13) has no kernels at key
/// ADInplaceOrView for them, inside of which `makeTensor` creates normal
/// tensors.
class ModeOfWritten {
public:
  explicit ModeOfWritten(c10::ArrayRef<at::Tensor> written) {
    if (c10::InferenceMode::is_enabled() &&
        std::any_of(written.begin(), written.end(), [](const at::Tensor &each) {
          return each.defined() && !each.is_inference();
        }))
      keys.emplace(c10::DispatchKey::ADInplaceOrView);
  }

private:
  std::optional<c10::impl::ExcludeDispatchKeyGuard> keys;
};

} // namespace torch_ltc

#endif // TORCH_LTC_GRAPH_INFERENCE_TENSORS_H
