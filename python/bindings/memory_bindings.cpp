//===- memory_bindings.cpp - Host memory behind lazy tensors --------------===//

#include "bindings.h"
#include "released_gil.h"

#include "eager_semantics/data_assignment.h"
#include "execution/step_executor.h"
#include "graph/inference_tensors.h"
#include "graph/live_tensors.h"
#include "graph/tensor_names.h"

#include <ATen/FunctionalStorageImpl.h>
#include <ATen/FunctionalTensorWrapper.h>
#include <ATen/Functions.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/dlpack.h>
#include <pybind11/stl.h>
#include <torch/csrc/autograd/python_variable.h>
#include <torch/csrc/utils/pybind.h>

#include <map>
#include <mutex>

namespace py = pybind11;
using namespace torch_ltc;
using at::functionalization::FunctionalStorageImpl;

namespace {

/// Returns the storage that the tensor shares with its views; null for a tensor
/// without a functional wrapper, which has no views.
FunctionalStorageImpl *memoryOf(const at::Tensor &tensor) {
  if (!at::functionalization::impl::isFunctionalTensor(tensor))
    return nullptr;
  return static_cast<FunctionalStorageImpl *>(
      tensor.unsafeGetTensorImpl()->unsafe_storage().unsafeGetStorageImpl());
}

FunctionalStorageImpl *memoryOf(const c10::Storage &storage) {
  auto *memory =
      dynamic_cast<FunctionalStorageImpl *>(storage.unsafeGetStorageImpl());
  TORCH_CHECK(memory, "A traced value on device 'lazy' has no storage: move "
                      "the tensor with .to('cpu') first.");
  return memory;
}

/// Functions below access tensors in such a scope.
struct MemoryAccess {
  at::AutoDispatchBelowAutograd noAutograd;
  TensorAccess tensors;
};

/// Computes and returns the lazy tensor that covers all of `memory`. The memory
/// may have another base afterwards, because other threads may write to it
/// during the wait.
at::Tensor computedBase(FunctionalStorageImpl &memory,
                        const std::string &reader) {
  memory.apply_updates();
  at::Tensor base = memory.base();
  StepExecutor::get().materialize(base, reader);
  return base;
}

bool isWholeMemory(const at::Tensor &base) {
  return base.is_non_overlapping_and_dense() && base.storage_offset() == 0;
}

/// Returns a CPU copy of the memory that a tensor and its views share, or None
/// if the elements of the base don't cover all of the memory.
std::optional<at::Tensor> readBase(FunctionalStorageImpl *memory) {
  if (!memory)
    return std::nullopt;
  at::Tensor base;
  HostDataPtr data;
  {
    MemoryAccess access;
    memory->apply_updates();
    if (!isWholeMemory(memory->base()))
      return std::nullopt;
    base = computedBase(*memory, "aten::_to_copy");
    data = tensorDataOf(base)->data();
  }
  // Other threads may trace meanwhile: nothing overwrites data that is held.
  return data->copyToTensor(base.strides());
}

/// Returns the address of a storage's values. The address is unique: if another
/// storage with an equal value shares the buffer and has claimed its address,
/// the values are copied first.
uintptr_t addressOf(const c10::Storage &storage) {
  FunctionalStorageImpl *memory = memoryOf(storage);
  MemoryAccess access;
  TensorDataPtr data = tensorDataOf(computedBase(*memory, "data_ptr()"));
  HostDataPtr host = data->data();
  if (byteSize(host->shape()) == 0)
    return 0;
  if (!host->buffer()->claimAddress(memory)) {
    HostDataPtr copy = HostData::copyOf(host->sharedTensor());
    copy->setName(host->name());
    copy->buffer()->claimAddress(memory);
    data->setData(copy);
    host = copy;
  }
  return reinterpret_cast<uintptr_t>(host->buffer()->data());
}

/// Returns a CPU tensor that shares the memory of the tensor's value. Nothing
/// overwrites this memory while the CPU tensor lives. Returns None if the
/// tensor's base isn't packed or has a different dtype, so that the tensor's
/// strides don't describe the memory.
std::optional<at::Tensor> hostView(const at::Tensor &tensor) {
  MemoryAccess access;
  FunctionalStorageImpl *memory = memoryOf(tensor);
  if (!memory)
    return std::nullopt;
  at::Tensor base = computedBase(*memory, "__dlpack__()");
  if (!isPacked(base) || base.scalar_type() != tensor.scalar_type())
    return std::nullopt;
  HostDataPtr host = tensorDataOf(base)->data();
  // Hold the data, not only its buffer, so that no step reuses the buffer.
  at::Tensor whole = at::from_blob(
      host->buffer()->data(), host->shape().sizes(),
      [host](void *) mutable { host.reset(); },
      at::TensorOptions().dtype(host->shape().scalar_type()));
  return whole.as_strided(tensor.sizes(), tensor.strides(),
                          tensor.storage_offset());
}

/// Returns zeros whose pages the system allocates only when they are written.
/// Live zeros of the same sizes and dtype are shared.
HostDataPtr untouchedZeros(at::IntArrayRef sizes, at::ScalarType dtype) {
  static std::mutex mutex;
  static auto *known =
      new std::map<std::pair<std::vector<int64_t>, at::ScalarType>,
                   std::weak_ptr<HostData>>;
  std::scoped_lock lock(mutex);
  std::weak_ptr<HostData> &entry = (*known)[{sizes.vec(), dtype}];
  HostDataPtr data = entry.lock();
  if (!data)
    entry = data = HostData::takeOver(at::zeros(sizes, dtype));
  return data;
}

at::Tensor untouchedZerosLike(const at::Tensor &value) {
  ModeOfResults mode(value);
  return makeTensor(untouchedZeros(value.sizes(), value.scalar_type()));
}

/// Releases the values of a base; returns whether it did. Views of the base
/// release their values when they are next used.
bool releaseBase(FunctionalStorageImpl &memory) {
  memory.apply_updates();
  const at::Tensor &base = memory.base();
  // The zeros are packed, so they would change the strides of a base that isn't
  // packed.
  if (!isPacked(base))
    return false;
  memory.add_update(untouchedZerosLike(base), {});
  memory.apply_updates();
  return true;
}

/// Releases the values of `tensor` and of its base. The caller must write all
/// of that memory before reading it again.
void releaseMemory(const at::Tensor &tensor) {
  MemoryAccess access;
  FunctionalStorageImpl *memory = memoryOf(tensor);
  if (!memory || !releaseBase(*memory))
    return;
  auto *wrapper =
      at::functionalization::impl::unsafeGetFunctionalWrapper(tensor);
  if (at::functionalization::impl::isBaseTensor(tensor))
    wrapper->regenerate_from_base();
  else if (isPacked(wrapper->value()))
    wrapper->replace_(untouchedZerosLike(wrapper->value()));
}

/// Resizes a storage to 0 bytes, which releases its values, or back to its full
/// size. Returns whether `size` is one of these sizes.
bool resizeStorage(const c10::Storage &storage, size_t size) {
  MemoryAccess access;
  FunctionalStorageImpl *memory = memoryOf(storage);
  if (size && size != memory->base().nbytes())
    return false;
  if (!size && memory->nbytes())
    releaseBase(*memory);
  memory->set_nbytes(size);
  return true;
}

void markReadOnly(const py::capsule &capsule) {
  static_cast<DLManagedTensorVersioned *>(
      PyCapsule_GetPointer(capsule.ptr(), "dltensor_versioned"))
      ->flags |= DLPACK_FLAG_BITMASK_READ_ONLY;
}

/// Exchanges the C++ objects of two Python tensors. torch's function (2.13)
/// does the same, but rejects tensors to which C++ code holds weak references.
void exchangeTensors(py::handle first, py::handle second) {
  for (py::handle tensor : {first, second})
    TORCH_CHECK_TYPE(THPVariable_Check(tensor.ptr()), "expected a tensor");
  auto *a = reinterpret_cast<THPVariable *>(first.ptr());
  auto *b = reinterpret_cast<THPVariable *>(second.ptr());
  // While these copies exist, each C++ object owns a reference to its Python
  // object, so no reference count has to be changed.
  const at::Tensor ofFirst = a->cdata, ofSecond = b->cdata;
  ofFirst.unsafeGetTensorImpl()->pyobj_slot()->store_pyobj(second.ptr());
  ofSecond.unsafeGetTensorImpl()->pyobj_slot()->store_pyobj(first.ptr());
  a->cdata = ofSecond;
  b->cdata = ofFirst;
}

} // namespace

void torch_ltc::bindMemory(py::module_ &module) {
  using NoGil = py::call_guard<ReleasedGil>;
  module.def("memory_id", [](const at::Tensor &tensor) {
    return reinterpret_cast<intptr_t>(memoryOf(tensor));
  });
  module.def(
      "read_memory",
      [](const at::Tensor &tensor) { return readBase(memoryOf(tensor)); },
      NoGil());
  module.def(
      "read_storage",
      [](const c10::Storage &storage) {
        std::optional<at::Tensor> copy = readBase(memoryOf(storage));
        TORCH_CHECK(copy, "The memory of a lazy tensor whose elements overlap "
                          "can't be read as a storage: read the tensor.");
        return *copy;
      },
      NoGil());
  module.def("storage_address", &addressOf, NoGil());
  module.def("assign_data", &assignData, py::arg("tensor"), py::arg("value"));
  module.def("exchange_tensors", &exchangeTensors);
  module.def("remove_tensor_name", &removeTensorName, NoGil());
  module.def("release_memory", &releaseMemory, NoGil());
  module.def("resize_storage", &resizeStorage, NoGil());
  module.def("host_view", &hostView, NoGil());
  module.def("mark_read_only", &markReadOnly);
}
