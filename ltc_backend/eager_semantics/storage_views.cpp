//===- storage_views.cpp - Tensors set to parts of a storage --------------===//
//
// Kernels of `set_` with a storage, or with a tensor that represents one. On
// this device, a storage is the memory that functionalization stores for a
// tensor and its views, so the result becomes one more view of that memory.
// Other ops on the memory of tensors are here, too.
//
//===----------------------------------------------------------------------===//

#include "eager_semantics/memory_overlap.h"
#include "eager_semantics/registration.h"
#include "tracing/boxed_kernels.h"
#include "tracing/writing_call.h"

#include <ATen/FunctionalStorageImpl.h>
#include <ATen/FunctionalTensorWrapper.h>
#include <ATen/Functions.h>

using namespace torch_ltc;
using c10::IValue;

namespace {

/// The kernel of `set_` with a tensor and an offset. torch's composite uses the
/// source's storage, which has no memory on this device.
at::Tensor &setToPart(at::Tensor &self, const at::Tensor &source,
                      c10::SymInt offset, c10::SymIntArrayRef size,
                      c10::SymIntArrayRef stride) {
  TORCH_CHECK(source.is_contiguous(),
              "passed in tensor to be used as storage must be contiguous");
  c10::SymDimVector strides(stride.begin(), stride.end());
  if (strides.empty()) {
    strides.resize(size.size());
    c10::SymInt step = 1;
    for (size_t i = size.size(); i-- > 0; step = step * size[i])
      strides[i] = step;
  }
  at::NoGradGuard quiet; // for the ops that make the view
  return self.set_(source.as_strided_symint(
      size, strides, source.sym_storage_offset() + offset));
}

/// Returns all elements of a storage, in memory order, as a tensor of `dtype`.
at::Tensor elementsOf(const at::Storage &storage, at::ScalarType dtype) {
  auto *memory = dynamic_cast<at::functionalization::FunctionalStorageImpl *>(
      storage.unsafeGetStorageImpl());
  TORCH_CHECK(memory, "A storage of device '", storage.device(),
              "' can't become a part of a tensor on device 'lazy'.");
  memory->apply_updates();
  at::Tensor whole =
      at::functionalization::impl::to_functional_tensor(memory->base());
  whole.unsafeGetTensorImpl()->set_storage_keep_dtype(storage);
  int64_t bytes = int64_t(memory->base().nbytes());
  whole = whole.as_strided({bytes / int64_t(whole.element_size())}, {1}, 0);
  return whole.scalar_type() == dtype ? whole : whole.view(dtype);
}

at::Tensor &setToStorage(at::Tensor &self, at::Storage storage) {
  at::NoGradGuard quiet;
  return self.set_(elementsOf(storage, self.scalar_type()));
}

at::Tensor &setToStoragePart(at::Tensor &self, at::Storage storage,
                             c10::SymInt offset, c10::SymIntArrayRef size,
                             c10::SymIntArrayRef stride) {
  at::NoGradGuard quiet;
  return setToPart(self, elementsOf(storage, self.scalar_type()),
                   std::move(offset), size, stride);
}

/// Wraps `is_set_to` at key Functionalize, below which no tensor has memory.
class IsSetTo final : public KernelAround {
public:
  using KernelAround::KernelAround;

  void operator()(const c10::OperatorHandle &op, c10::DispatchKeySet keys,
                  torch::jit::Stack *stack) {
    const at::Tensor a = torch::jit::peek(*stack, 0, 2).toTensor();
    const at::Tensor b = torch::jit::peek(*stack, 1, 2).toTensor();
    if (!isLazyWrapper(a) || !isLazyWrapper(b))
      return previous.callBoxed(op, keys, stack);
    torch::jit::drop(*stack, 2);
    stack->emplace_back(shareStorage(a, b) && a.sizes() == b.sizes() &&
                        a.strides() == b.strides() &&
                        a.sym_storage_offset() == b.sym_storage_offset());
  }
};

/// Wraps `record_stream` at key Functionalize, whose fallback rejects the op.
/// It has no effect, because there is only one stream.
class RecordStream final : public KernelAround {
public:
  using KernelAround::KernelAround;

  void operator()(const c10::OperatorHandle &op, c10::DispatchKeySet keys,
                  torch::jit::Stack *stack) {
    if (!isLazyWrapper(torch::jit::peek(*stack, 0, 2).toTensor()))
      return previous.callBoxed(op, keys, stack);
    torch::jit::drop(*stack, 2);
  }
};

/// Wraps `set_` at key Functionalize. Functionalization forbids writes to the
/// memory that the tensor leaves (torch 2.13), even through other tensors in
/// this memory. So the tensor is first given separate memory, which it then
/// leaves.
class SetElsewhere final : public KernelAround {
public:
  using KernelAround::KernelAround;

  void operator()(const c10::OperatorHandle &op, c10::DispatchKeySet keys,
                  torch::jit::Stack *stack) {
    size_t numArguments = op.schema().arguments().size();
    const at::Tensor self =
        torch::jit::peek(*stack, 0, numArguments).toTensor();
    if (numArguments > 1)
      checkDevices(self, torch::jit::peek(*stack, 1, numArguments).toTensor());
    if (isLazyWrapper(self)) {
      if (numArguments == 1) { // becomes empty
        at::Tensor empty = at::empty({0}, self.options());
        torch::jit::drop(*stack, 1);
        stack->emplace_back(self.set_(empty));
        return;
      }
      if (torch::jit::peek(*stack, 1, numArguments).toTensor().is_same(self))
        return torch::jit::drop(*stack, 1);
      at::functionalization::impl::unsafe_reset_storage(self);
      if (numArguments > 1)
        takeMemory(torch::jit::peek(*stack, 1, numArguments));
    }
    previous.callBoxed(op, keys, stack);
  }

private:
  /// Removes the source's conj and neg bits: only the memory is shared.
  static void takeMemory(IValue &source) {
    if (source.toTensor().is_conj())
      source = at::_conj(source.toTensor());
    if (source.toTensor().is_neg())
      source = at::_neg_view(source.toTensor());
  }

  /// Raises the error of eager's kernels for different devices, with the same
  /// message, before the tensor leaves its memory.
  static void checkDevices(const at::Tensor &self, const at::Tensor &source) {
    TORCH_CHECK(self.device() == source.device(),
                "Attempted to set the storage of a tensor on device \"",
                self.device(), "\" to a storage on different device \"",
                source.device(),
                "\". This is no longer allowed; the devices must match.");
  }
};

} // namespace

void torch_ltc::registerStorageChanges() {
  SilentRegistration silence;
  for (const char *overload : {"", "source_Tensor"})
    registerAround<SetElsewhere>(findOp({"aten::set_", overload}),
                                 c10::DispatchKey::Functionalize);
  registerAround<IsSetTo>(findOp({"aten::is_set_to", ""}),
                          c10::DispatchKey::Functionalize);
  registerAround<RecordStream>(findOp({"aten::record_stream", ""}),
                               c10::DispatchKey::Functionalize);
}

void torch_ltc::registerStorageViews(torch::Library &library) {
  library.impl("set_.source_Tensor_storage_offset", TORCH_FN(setToPart));
  library.impl("set_.source_Storage", TORCH_FN(setToStorage));
  library.impl("set_.source_Storage_storage_offset",
               TORCH_FN(setToStoragePart));
}
