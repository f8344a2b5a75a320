//===- wrapped_value.cpp - Values of functional tensors -------------------===//

#include "tracing/wrapped_value.h"
#include "graph/torch_dispatch.h"

#include "graph/inference_tensors.h"
#include "graph/live_tensors.h"

#include <ATen/FunctionalTensorWrapper.h>
#include <c10/core/impl/TorchDispatchModeTLS.h>

namespace functionalization = at::functionalization::impl;

bool torch_ltc::isPlainWrapper(const at::Tensor &tensor) {
  return tensor.defined() && tensor.device().is_lazy() &&
         functionalization::isFunctionalTensor(tensor) &&
         !hasTorchDispatch(tensor) && !tensor.is_inference() &&
         !c10::impl::dispatch_mode_enabled();
}

bool torch_ltc::isPlainOperand(const at::Tensor &tensor, at::ScalarType dtype) {
  return isPlainWrapper(tensor) && tensor.scalar_type() == dtype &&
         !tensor._fw_grad(/*level=*/0).defined();
}

at::Tensor torch_ltc::valueOf(const at::Tensor &tensor) {
  functionalization::sync(tensor);
  return functionalization::from_functional_tensor(tensor);
}

/// Returns a copy of `value` as an inference tensor.
static at::Tensor inferenceValue(const at::Tensor &value) {
  c10::InferenceMode mode;
  torch_ltc::NewMemory memory;
  at::Tensor result = torch_ltc::withValueOf(value);
  torch_ltc::setGeometry(result, value.strides(), value.storage_offset());
  return result;
}

void torch_ltc::setValue(const at::Tensor &tensor, const at::Tensor &value) {
  // The new value of an inference tensor must be an inference tensor as well,
  // because a view is an inference tensor if its base's value is one. So a
  // value that was computed from normal tensors is converted.
  bool isOtherKind = tensor.is_inference() && !value.is_inference();
  at::Tensor replacement = isOtherKind ? inferenceValue(value) : value;
  // An op's result has no storage offset, but results of `select_scatter` and
  // similar ops have, although they aren't views.
  c10::SymInt offset = tensor.sym_storage_offset();
  if (offset != 0 && functionalization::isBaseTensor(tensor) &&
      value.strides() == tensor.strides() &&
      value.storage_offset() != offset.expect_int()) {
    replacement = withValueOf(replacement);
    setGeometry(replacement, value.strides(), offset.expect_int());
  }
  functionalization::replace_(tensor, replacement);
  functionalization::commit_update(tensor);
  functionalization::sync(tensor);
  if (!functionalization::isBaseTensor(tensor))
    LiveSet::ofThisThread()->noteWrittenView(tensor);
}

void torch_ltc::replaceValue(const at::Tensor &tensor,
                             const at::Tensor &value) {
  // If a dim has size 1, the op's result may have other strides than the tensor
  // although both are row-major.
  int64_t offset = tensor.sym_storage_offset().expect_int();
  if (value.strides() != tensor.strides() || value.storage_offset() != offset)
    setGeometry(value, tensor.strides(), offset);
  setValue(tensor, value);
  tensor.unsafeGetTensorImpl()->bump_version();
}

torch_ltc::ViewRecords torch_ltc::replaceViewRecords(const at::Tensor &tensor,
                                                     ViewRecords records) {
  auto *wrapper = functionalization::unsafeGetFunctionalWrapper(tensor);
  wrapper->apply_updates();
  // The wrapper has no method to remove records (torch 2.13).
  const_cast<ViewRecords &>(wrapper->view_metas()).swap(records);
  wrapper->regenerate_from_base();
  return records;
}

void torch_ltc::leavePythonStorage(const at::Tensor &tensor) {
  if (!tensor.device().is_lazy() ||
      !functionalization::isFunctionalTensor(tensor) ||
      !functionalization::isBaseTensor(tensor))
    return;
  const c10::Storage &storage = tensor.unsafeGetTensorImpl()->unsafe_storage();
  if (storage.use_count() != 2 ||
      !storage.unsafeGetStorageImpl()->pyobj_slot()->load_pyobj())
    return;
  functionalization::sync(tensor);
  functionalization::unsafeGetFunctionalWrapper(tensor)
      ->_unsafe_reset_storage();
}

at::Tensor torch_ltc::wholeMemory(const at::Tensor &view) {
  auto *wrapper = functionalization::unsafeGetFunctionalWrapper(view);
  const at::Tensor &base = functionalMemory(view).base();
  at::Tensor whole;
  if (base.scalar_type() == view.scalar_type())
    whole = at::Tensor(wrapper->shallow_copy_and_detach(
        c10::VariableVersion(), /*allow_tensor_metadata_change=*/true));
  else // A wrapper converts what is written to its own dtype.
    whole = at::detail::make_tensor<at::FunctionalTensorWrapper>(
        base, wrapper, wrapper->view_metas().front());
  replaceViewRecords(whole, {});
  return whole;
}
