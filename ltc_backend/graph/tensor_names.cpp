//===- tensor_names.cpp - Names and marks of values -----------------------===//

#include "graph/tensor_names.h"

#include "graph/live_tensors.h"

#include <ATen/FunctionalTensorWrapper.h>

#include <unordered_map>

using namespace torch_ltc;

namespace {

using WeakImpl =
    c10::weak_intrusive_ptr<c10::TensorImpl, c10::UndefinedTensorImpl>;

struct NamedTensor {
  WeakImpl impl;
  std::string name;
};

struct Names {
  std::mutex mutex;
  std::unordered_map<c10::TensorImpl *, NamedTensor> byImpl;
};

Names &names() {
  static auto *instance = new Names;
  return *instance;
}

/// Whether any tensor has ever been named, which is cheap to check in each
/// step.
std::atomic<bool> hasNames{false};

/// The data of a tensor, without applying its pending updates, which would
/// trace ops.
HostDataPtr presentData(const at::Tensor &tensor) {
  at::Tensor inner = tensor;
  if (at::functionalization::impl::isFunctionalTensor(tensor))
    inner = at::functionalization::impl::from_functional_tensor(tensor);
  TensorDataPtr data = tensorDataOf(inner);
  return data ? data->data() : nullptr;
}

} // namespace

void torch_ltc::setTensorName(const at::Tensor &tensor,
                              const std::string &name) {
  TORCH_CHECK(tensor.defined() && tensor.device().is_lazy(),
              "Only lazy tensors can be named.");
  if (HostDataPtr data = presentData(tensor))
    data->setName(name);
  hasNames = true;
  std::lock_guard<std::mutex> lock(names().mutex);
  names().byImpl.insert_or_assign(
      tensor.unsafeGetTensorImpl(),
      NamedTensor{WeakImpl(tensor.getIntrusivePtr()), name});
}

bool torch_ltc::markSize(const at::Tensor &tensor, uint32_t dim, bool isDynamic,
                         int64_t least, int64_t most) {
  HostDataPtr data = presentData(tensor);
  if (!data || !data->buffer()) // dropped (graph/view_values.h)
    return false;
  SizeMarks marks = data->sizeMarks();
  addMark(marks, {dim, isDynamic, least, most});
  data->setSizeMarks(std::move(marks));
  return true;
}

std::string torch_ltc::tensorName(const at::Tensor &tensor) {
  std::lock_guard<std::mutex> lock(names().mutex);
  auto found = names().byImpl.find(tensor.unsafeGetTensorImpl());
  if (found == names().byImpl.end() || found->second.impl.expired())
    return "";
  return found->second.name;
}

void torch_ltc::removeTensorName(const at::Tensor &tensor) {
  std::lock_guard<std::mutex> lock(names().mutex);
  names().byImpl.erase(tensor.unsafeGetTensorImpl());
}

void torch_ltc::nameData() {
  if (!hasNames)
    return;
  std::lock_guard<std::mutex> lock(names().mutex);
  for (auto entry = names().byImpl.begin(); entry != names().byImpl.end();) {
    auto impl = entry->second.impl.lock();
    if (!impl) {
      entry = names().byImpl.erase(entry);
      continue;
    }
    if (HostDataPtr data = presentData(at::Tensor(std::move(impl))))
      data->setName(entry->second.name);
    ++entry;
  }
}
