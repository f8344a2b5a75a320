//===- live_tensors.cpp - Tensors with a pending graph, by thread ---------===//

#include "graph/live_tensors.h"

#include "graph/effects.h"
#include "graph/first_tensor.h"
#include "graph/torch_dispatch.h"
#include "ir/node.h"
#include "memory/lazy_device.h"
#include "memory/running_step.h"
#include "shape/strides.h"

#include <ATen/FunctionalTensorWrapper.h>
#include <c10/core/InferenceMode.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <c10/core/impl/TorchDispatchModeTLS.h>
#include <torch/csrc/lazy/core/tensor_impl.h>

#include <algorithm>
#include <atomic>

using namespace torch_ltc;
using torch::lazy::LazyTensor;
using torch::lazy::Value;

namespace {

std::atomic<int64_t> liveTensors{0};
std::atomic<int> tracingThreads{0}; // including ended ones
std::atomic<bool> secondScheduler{false};
/// Null if it isn't set or has been called.
std::atomic<void (*)()> secondThreadHook{nullptr};

void callSecondThreadHook() {
  if (auto hook = secondThreadHook.exchange(nullptr))
    hook();
}

bool isGraph(const Value &value) {
  return value.node && !asGraphNode(value.node.get())->isData();
}

/// A `dynamic_cast` to a final class, without the search through the bases,
/// which would cost time for each operand of each op.
template <typename T, typename Base> T *castTo(Base *object) {
  static_assert(std::is_final_v<T>);
  return object && typeid(*object) == typeid(T) ? static_cast<T *>(object)
                                                : nullptr;
}

/// Sets of threads that ended while they had pending tensors. Guarded by the
/// trace lock.
std::vector<std::shared_ptr<LiveSet>> &orphans() {
  static auto *sets = new std::vector<std::shared_ptr<LiveSet>>;
  return *sets;
}

/// The sets of all threads. Guarded by the trace lock.
std::vector<std::weak_ptr<LiveSet>> &threadSets() {
  static auto *sets = new std::vector<std::weak_ptr<LiveSet>>;
  return *sets;
}

} // namespace

struct torch_ltc::ThreadSet {
  std::shared_ptr<LiveSet> set = std::make_shared<LiveSet>();
  ThreadSet() {
    {
      std::lock_guard<TraceLock> lock(traceLock);
      std::erase_if(threadSets(),
                    [](const auto &set) { return set.expired(); });
      threadSets().push_back(set);
    }
    if (tracingThreads.fetch_add(1) > 0)
      callSecondThreadHook();
  }
  ~ThreadSet() {
    std::lock_guard<TraceLock> lock(traceLock);
    set->hasEnded = true;
    if (set->numPending())
      orphans().push_back(set);
  }
};

namespace {

/// Gives access to the protected constructor, to create a temporary LazyTensor
/// without an allocation: `LTCTensorImpl` copies the LazyTensor that it gets.
struct LazyTensorMaker : LazyTensor {
  explicit LazyTensorMaker(std::shared_ptr<Data> data)
      : LazyTensor(std::move(data)) {}
};

} // namespace

TensorData::TensorData(Value value, std::shared_ptr<LiveSet> set)
    : Data(std::move(value), lazyDevice()), liveSet(std::move(set)) {
  liveTensors.fetch_add(1, std::memory_order_relaxed);
}

TensorData::TensorData(HostDataPtr data, std::shared_ptr<LiveSet> set)
    : Data(torch::lazy::BackendDataPtr(std::move(data)), lazyDevice()),
      liveSet(std::move(set)) {
  liveTensors.fetch_add(1, std::memory_order_relaxed);
}

// In a forked process, raises the error when a tensor is created: the thread
// that pickles a DataLoader worker's batches can't report one.

TensorDataPtr TensorData::create(Value value) {
  checkHasWorker();
  auto data =
      std::make_shared<TensorData>(std::move(value), LiveSet::ofThisThread());
  std::lock_guard<TraceLock> lock(traceLock);
  if (isGraph(data->ir_value))
    data->liveSet->link(*data);
  return data;
}

TensorDataPtr TensorData::create(HostDataPtr data) {
  checkHasWorker();
  return std::make_shared<TensorData>(std::move(data), LiveSet::ofThisThread());
}

TensorData::~TensorData() {
  liveTensors.fetch_sub(1, std::memory_order_relaxed);
  std::lock_guard<TraceLock> lock(traceLock);
  if (isLinked)
    liveSet->unlink(*this);
  if (liveSet->endOfChain == this)
    liveSet->endOfChain = nullptr;
}

Value TensorData::value() {
  std::lock_guard<TraceLock> lock(traceLock);
  if (!ir_value.node && handle)
    ir_value = torch::lazy::NodePtr(
        std::make_shared<DataNode>(std::static_pointer_cast<HostData>(handle)));
  return ir_value;
}

void TensorData::setValue(Value value) {
  Value old; // destroyed outside the lock: may be a deep graph
  std::lock_guard<TraceLock> lock(traceLock);
  old = std::move(ir_value);
  ir_value = std::move(value);
  handle = nullptr;
  ++generation;
  if (isGraph(ir_value) && !isLinked)
    liveSet->link(*this);
  else if (!isGraph(ir_value) && isLinked)
    liveSet->unlink(*this);
}

void TensorData::setData(HostDataPtr data) {
  Value old;
  std::lock_guard<TraceLock> lock(traceLock);
  old = std::move(ir_value);
  ir_value = Value();
  handle = std::move(data);
  if (isLinked)
    liveSet->unlink(*this);
}

void TensorData::setData(const Value &computed, HostDataPtr data) {
  std::lock_guard<TraceLock> lock(traceLock);
  if (ir_value.node == computed.node && ir_value.index == computed.index)
    setData(std::move(data));
}

HostDataPtr TensorData::data() {
  std::lock_guard<TraceLock> lock(traceLock);
  if (handle)
    return std::static_pointer_cast<HostData>(handle);
  if (ir_value.node && !isGraph(ir_value))
    return static_cast<const DataNode *>(ir_value.node.get())->data();
  return nullptr;
}

bool TensorData::isPending() {
  std::lock_guard<TraceLock> lock(traceLock);
  return isGraph(ir_value);
}

torch::lazy::Shape TensorData::shapeValue() {
  std::lock_guard<TraceLock> lock(traceLock);
  return ir_value.node ? ir_value.shape() : handle->shape();
}

const std::shared_ptr<LiveSet> &LiveSet::ofThisThread() {
  thread_local ThreadSet threadSet;
  return threadSet.set;
}

void LiveSet::link(TensorData &data) {
  data.previous = last;
  data.next = nullptr;
  (last ? last->next : first) = &data;
  last = &data;
  data.isLinked = true;
  ++count;
  ++numLinked;
}

void LiveSet::unlink(TensorData &data) {
  (data.previous ? data.previous->next : first) = data.next;
  (data.next ? data.next->previous : last) = data.previous;
  data.isLinked = false;
  --count;
}

void LiveSet::collect(std::vector<TensorDataPtr> &result) {
  result.reserve(result.size() + count);
  for (TensorData *data = first; data; data = data->next)
    if (TensorDataPtr alive = data->weak_from_this().lock())
      result.push_back(std::move(alive));
}

void LiveSet::noteWrittenView(const at::Tensor &view) {
  std::lock_guard<TraceLock> lock(traceLock);
  views.note(view);
}

void LiveSet::noteView(const at::Tensor &view, const at::Tensor &base) {
  std::lock_guard<TraceLock> lock(traceLock);
  views.noteLarge(view, base);
  if (!at::functionalization::impl::isBaseTensor(base))
    views.noteChained(view);
}

std::vector<TensorDataPtr> LiveSet::pending() {
  std::vector<TensorDataPtr> result;
  std::lock_guard<TraceLock> lock(traceLock);
  views.releaseOperands();
  views.drop();
  std::vector<std::shared_ptr<LiveSet>> adopted;
  adopted.swap(orphans());
  for (const std::shared_ptr<LiveSet> &set : adopted)
    set->collect(result);
  collect(result);
  sortForGraph(result);
  return result;
}

size_t LiveSet::numPending() {
  std::lock_guard<TraceLock> lock(traceLock);
  return count;
}

uint64_t LiveSet::numTraced() {
  std::lock_guard<TraceLock> lock(traceLock);
  return numLinked;
}

std::vector<std::shared_ptr<LiveSet>> LiveSet::all() {
  std::vector<std::shared_ptr<LiveSet>> sets;
  std::lock_guard<TraceLock> lock(traceLock);
  for (const std::weak_ptr<LiveSet> &weak : threadSets())
    if (std::shared_ptr<LiveSet> set = weak.lock())
      sets.push_back(std::move(set));
  return sets;
}

int64_t torch_ltc::numLiveTensors() {
  return liveTensors.load(std::memory_order_relaxed);
}

TensorDataPtr torch_ltc::tensorDataOf(const at::Tensor &tensor) {
  if (!tensor.defined() || !tensor.device().is_lazy())
    return nullptr;
  c10::TensorImpl *impl = tensor.unsafeGetTensorImpl();
  at::Tensor unwrapped;
  if (tensor.key_set().has(c10::DispatchKey::Functionalize)) {
    std::lock_guard<TraceLock> lock(traceLock);
    at::functionalization::impl::sync(tensor);
    // `from_functional_tensor` (torch 2.13) isn't used here: it doesn't unwrap
    // numbers that became tensors, which usually have no wrapper.
    unwrapped = at::functionalization::impl::unsafeGetFunctionalWrapper(tensor)
                    ->value();
    impl = unwrapped.unsafeGetTensorImpl();
  }
  auto *lazyImpl = castTo<torch::lazy::LTCTensorImpl>(impl);
  TORCH_CHECK(lazyImpl, "A tensor on device 'lazy' of the class ",
              typeid(*impl).name(), " can't be traced.");
  const std::shared_ptr<LazyTensor::Data> &data = lazyImpl->tensor()->data();
  TORCH_CHECK(castTo<TensorData>(data.get()),
              "A lazy tensor was created by another lazy backend.");
  return std::static_pointer_cast<TensorData>(data);
}

bool torch_ltc::isTracedByThreads() {
  return tracingThreads.load(std::memory_order_relaxed) > 1;
}

bool torch_ltc::isScheduledByThreads() {
  return secondScheduler.load(std::memory_order_relaxed) || isTracedByThreads();
}

void torch_ltc::expectSecondScheduler() {
  secondScheduler.store(true, std::memory_order_relaxed);
}

void torch_ltc::onSecondThread(void (*hook)()) {
  secondThreadHook = hook;
  if (tracingThreads > 1) // while the first tensor was being prepared
    callSecondThreadHook();
}

TensorAccess::TensorAccess() {
  LiveSet::ofThisThread(); // a second thread makes ops lock
  traceLock.lock();
}

// Not inline, because other libraries would have a separate `traceLock`.
TensorAccess::~TensorAccess() { traceLock.unlock(); }

c10::DispatchKeySet &torch_ltc::dispatchKeysOf(c10::TensorImpl &tensor) {
  struct Access : c10::TensorImpl {
    static auto member() { return &Access::key_set_; }
  };
  return tensor.*Access::member();
}

at::Tensor torch_ltc::makeTensor(TensorDataPtr data, at::IntArrayRef sizes) {
  prepareFirstTensor();
  // Inside a kernel of ADInplaceOrView, creates a normal tensor: these kernels
  // only run for normal tensors, and results of calls inside them are views of
  // normal tensors or are written to them.
  std::optional<c10::InferenceMode> normal;
  if (c10::InferenceMode::is_enabled() &&
      c10::impl::tls_is_dispatch_key_excluded(
          c10::DispatchKey::ADInplaceOrView))
    normal.emplace(false);
  at::Tensor tensor =
      torch::lazy::CreateAtenFromLtcTensor(LazyTensorMaker(std::move(data)));
  // Makes the base class report sizes and strides, because LTCTensorImpl (torch
  // 2.13) always reports row-major strides.
  c10::TensorImpl *impl = tensor.unsafeGetTensorImpl();
  impl->set_custom_sizes_strides(c10::TensorImpl::SizesStridesPolicy::Default);
  impl->set_sizes_contiguous(sizes);
  c10::DispatchKeySet &keys = dispatchKeysOf(*impl);
  keys = keys.add(autocastKey).add(lockKey);
  return tensor;
}

at::Tensor torch_ltc::makeTensor(Value value) {
  // The sizes belong to the node, which the tensor's data keeps alive.
  at::IntArrayRef sizes = value.shape().sizes();
  return makeTensor(TensorData::create(std::move(value)), sizes);
}

at::Tensor torch_ltc::makeTensor(HostDataPtr data) {
  torch::lazy::Shape shape = data->shape();
  return makeTensor(TensorData::create(std::move(data)), shape.sizes());
}

at::Tensor torch_ltc::withValueOf(const at::Tensor &tensor) {
  // Acquire access before reading the value: in a thread's first call,
  // acquiring it takes so long that another thread's step may compute the value
  // meanwhile.
  TensorAccess access;
  TensorDataPtr data = tensorDataOf(tensor);
  HostDataPtr host = data->data();
  return host ? makeTensor(std::move(host)) : makeTensor(data->value());
}

void torch_ltc::setGeometry(const at::Tensor &tensor, at::IntArrayRef strides,
                            int64_t offset) {
  tensor.unsafeGetTensorImpl()->set_sizes_and_strides(tensor.sizes(), strides,
                                                      offset);
}

bool torch_ltc::hasRepeatedElements(const at::Tensor &tensor) {
  at::IntArrayRef sizes = tensor.sizes(), strides = tensor.strides();
  for (size_t i = 0; i < sizes.size(); ++i)
    if (sizes[i] > 1 && strides[i] == 0)
      return true;
  return false;
}

void torch_ltc::keepGeometry(const at::Tensor &value,
                             const at::Tensor &previous) {
  auto isValue = [](const at::Tensor &tensor) {
    const c10::DispatchKeySet keys = tensor.key_set();
    return tensor.device().is_lazy() &&
           !keys.has(c10::DispatchKey::Functionalize) &&
           !keys.has(c10::DispatchKey::Python);
  };
  if (!value.is_same(previous) && isValue(value) && isValue(previous) &&
      (value.strides() != previous.strides() ||
       value.storage_offset() != previous.storage_offset()) &&
      !hasRepeatedElements(previous))
    setGeometry(value, previous.strides(), previous.storage_offset());
}

void torch_ltc::resetSizes(const at::Tensor &tensor, at::IntArrayRef sizes) {
  at::Tensor inner = tensor;
  if (tensor.key_set().has(c10::DispatchKey::Functionalize))
    inner = at::functionalization::impl::from_functional_tensor(tensor);
  inner.unsafeGetTensorImpl()->set_sizes_contiguous(sizes);
}

bool torch_ltc::isPacked(const at::Tensor &tensor) {
  return tensor.storage_offset() == 0 && hasPackedStrides(tensor);
}

at::Tensor torch_ltc::wrapIfOutside(at::Tensor tensor) {
  bool isInside = c10::impl::tls_local_dispatch_key_set().excluded_.has(
      c10::DispatchKey::Functionalize);
  bool isForPython =
      isInsideTorchDispatch() && !c10::impl::dispatch_mode_enabled();
  if (!tensor.defined() || (isInside && !isForPython) ||
      at::functionalization::impl::isFunctionalTensor(tensor))
    return tensor;
  at::Tensor wrapper =
      at::functionalization::impl::to_functional_tensor(tensor);
  useOwnVersionCounter(wrapper);
  return wrapper;
}

void torch_ltc::useOwnVersionCounter(const at::Tensor &wrapper) {
  if (!wrapper.is_inference())
    wrapper.unsafeGetTensorImpl()->set_version_counter(c10::VariableVersion(0));
}
