//===- view_values.cpp - Values of views that needn't be kept -------------===//

#include "graph/view_values.h"

#include "graph/live_tensors.h"

#include <ATen/FunctionalStorageImpl.h>
#include <ATen/FunctionalTensorWrapper.h>
#include <torch/csrc/autograd/variable.h>
#include <torch/csrc/lazy/core/tensor_impl.h>

#include <utility>

using namespace torch_ltc;
using at::FunctionalTensorWrapper;
using at::Tensor;
using FunctionalStorage = at::functionalization::FunctionalStorageImpl;

/// Reading a value that was dropped traces an op for each view record, which
/// takes as long as copying about this many bytes.
static constexpr size_t kLarge = 64 << 10;

namespace {

/// Gives access to a private member: C++ permits an explicit instantiation to
/// name it.
template <auto member> struct PrivateMember {
  friend size_t &generationMember(FunctionalTensorWrapper &wrapper) {
    return wrapper.*member;
  }
};
template struct PrivateMember<&FunctionalTensorWrapper::generation_>;
size_t &generationMember(FunctionalTensorWrapper &wrapper);

} // namespace

size_t &torch_ltc::generationOf(FunctionalTensorWrapper &wrapper) {
  return generationMember(wrapper);
}

FunctionalStorage &torch_ltc::functionalMemory(const c10::TensorImpl &wrapper) {
  return static_cast<FunctionalStorage &>(
      *wrapper.unsafe_storage().unsafeGetStorageImpl());
}

static bool isLarge(const Tensor &tensor) { return tensor.nbytes() >= kLarge; }

/// False for subclasses.
static bool isLazyTensor(const Tensor &value) {
  const c10::TensorImpl &impl = *value.unsafeGetTensorImpl();
  return typeid(impl) == typeid(torch::lazy::LTCTensorImpl);
}

/// Whether `value`, the value of a wrapper, has a graph or memory that isn't
/// also the base's.
static bool isDroppable(const Tensor &value, const Tensor &base) {
  if (value.is_same(base) || !isLazyTensor(base))
    return false;
  TensorDataPtr own = tensorDataOf(value), whole = tensorDataOf(base);
  if (own->isPending())
    return own->value().node != whole->value().node;
  return own->data()->buffer() && own->data() != whole->data();
}

/// Replaces the wrapper's outdated value by data without memory.
static void dropValue(FunctionalTensorWrapper &wrapper) {
  const Tensor value = wrapper.value();
  Tensor dropped = makeTensor(
      HostData::create({value.scalar_type(), value.sizes()}, nullptr, nullptr));
  setGeometry(dropped, value.strides(), value.storage_offset());
  wrapper.replace_(dropped, /*from_lazy_regenerate=*/true);
}

void torch_ltc::restoreDroppedValue(const Tensor &wrapper) {
  auto *impl =
      static_cast<FunctionalTensorWrapper *>(wrapper.unsafeGetTensorImpl());
  if (impl->is_up_to_date() || !isLazyTensor(impl->value()))
    return;
  TensorDataPtr value = tensorDataOf(impl->value());
  if (!value->isPending() && !value->data()->buffer())
    at::functionalization::impl::sync(wrapper);
}

// An entry's pointer isn't used for a new object, because the weak reference
// keeps the memory of the old one.
void ViewValues::note(const Tensor &wrapper) {
  c10::TensorImpl *impl = wrapper.unsafeGetTensorImpl();
  FunctionalStorage &memory = functionalMemory(*impl);
  wrappers.try_emplace(impl, wrapper.getIntrusivePtr());
  memories.try_emplace(
      &memory,
      Memory{impl->unsafe_storage().getWeakStorageImpl(), memory.generation()});
}

void ViewValues::noteLarge(const Tensor &view, const Tensor &base) {
  if (isLarge(base))
    note(base);
  if (isLarge(view))
    note(view);
}

void ViewValues::noteChained(const Tensor &view) {
  chained.emplace_back(view.getIntrusivePtr());
}

void ViewValues::releaseOperands() {
  for (const WeakWrapper &one : std::exchange(chained, {})) {
    const Tensor view(one.lock());
    auto *meta = view.defined()
                     ? torch::autograd::impl::get_view_autograd_meta(view)
                     : nullptr;
    if (!meta)
      continue;
    // torch (2.13) has no function that changes an existing view's ViewInfo.
    using torch::autograd::ViewInfo;
    if (meta->has_bw_view())
      const_cast<ViewInfo &>(meta->get_backward_view()).rev_view_fn_ = nullptr;
    if (meta->has_fw_view())
      const_cast<ViewInfo &>(meta->get_forward_view()).rev_view_fn_ = nullptr;
  }
}

/// Drops the wrapper's value if it is outdated, or if it is the large value of
/// a view and the memory `isWritten`.
static void dropIfUnneeded(FunctionalTensorWrapper &wrapper, bool isWritten) {
  FunctionalStorage &memory = functionalMemory(wrapper);
  const Tensor value = wrapper.value();
  if (!isDroppable(value, memory.base()))
    return;
  if (isWritten && isLarge(value) && !wrapper.isBaseTensor())
    generationOf(wrapper) = memory.generation() - 1; // outdated
  if (!wrapper.is_up_to_date())
    dropValue(wrapper);
}

void ViewValues::drop() {
  for (auto entry = wrappers.begin(); entry != wrappers.end();) {
    c10::intrusive_ptr<c10::TensorImpl> impl = entry->second.lock();
    auto *wrapper = static_cast<FunctionalTensorWrapper *>(impl.get());
    bool isKept = wrapper && isLazyTensor(wrapper->value());
    if (isKept) {
      FunctionalStorage &memory = functionalMemory(*wrapper);
      auto before = memories.find(&memory);
      bool isWritten = before != memories.end() &&
                       before->second.generation != memory.generation();
      dropIfUnneeded(*wrapper, isWritten);
      isKept = isLarge(wrapper->value());
    }
    entry = isKept ? std::next(entry) : wrappers.erase(entry);
  }
  for (auto entry = memories.begin(); entry != memories.end();) {
    auto storage = entry->second.storage.lock();
    if (storage)
      entry->second.generation =
          static_cast<FunctionalStorage &>(*storage).generation();
    entry = storage ? std::next(entry) : memories.erase(entry);
  }
}
