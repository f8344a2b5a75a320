//===- temporary_values.cpp - Memory of values between ops ----------------===//

#include "programs/temporary_values.h"

#include "memory/buffer.h"

#include <c10/core/CPUAllocator.h>

#include <mutex>
#include <unordered_map>
#include <utility>

using namespace torch_ltc;

namespace {

thread_local bool areTemporary = false;

/// Smaller values fill gaps on the heap.
constexpr size_t kLarge = 1 << 20;

/// The sizes of the values in the pool. A size isn't stored with its value:
/// `raw_allocate`, which oneDNN's scratch memory comes from, passes only the
/// value's address on.
class PooledValues {
public:
  void *allocate(size_t bytes) {
    void *memory = memoryPool().allocate(bytes);
    std::lock_guard<std::mutex> lock(mutex);
    if (memory)
      sizes.emplace(memory, bytes);
    return memory;
  }

  /// Returns false if `memory` isn't a pooled value.
  bool free(void *memory) {
    std::unique_lock<std::mutex> lock(mutex);
    auto found = sizes.find(memory);
    if (found == sizes.end())
      return false;
    const size_t bytes = found->second;
    sizes.erase(found);
    lock.unlock();
    memoryPool().free(memory, bytes);
    return true;
  }

  bool contains(const void *memory) {
    std::lock_guard<std::mutex> lock(mutex);
    return sizes.contains(memory);
  }

private:
  std::mutex mutex;
  std::unordered_map<const void *, size_t> sizes;
};

// Never destroyed: tensors may outlive static destruction.
PooledValues &pooledValues() {
  static auto *instance = new PooledValues;
  return *instance;
}

c10::Allocator *innerAllocator = nullptr;

void freeAny(void *memory) {
  if (!pooledValues().free(memory))
    innerAllocator->raw_deallocate(memory);
}

/// Calls torch's allocator except for large temporary values.
class Allocator final : public c10::Allocator {
public:
  c10::DataPtr allocate(size_t bytes) override {
    if (!areTemporary || bytes < kLarge)
      return innerAllocator->allocate(bytes);
    void *memory = pooledValues().allocate(bytes);
    if (!memory) // torch's allocator raises its error
      return innerAllocator->allocate(bytes);
    return {memory, memory, &freeAny, c10::DeviceType::CPU};
  }

  bool is_simple_data_ptr(const c10::DataPtr &pointer) const override {
    return innerAllocator->is_simple_data_ptr(pointer);
  }

  c10::DeleterFnPtr raw_deleter() const override { return &freeAny; }

  void copy_data(void *to, const void *from, size_t bytes) const override {
    innerAllocator->copy_data(to, from, bytes);
  }
};

} // namespace

TemporaryValues::TemporaryValues() : before(std::exchange(areTemporary, true)) {
  static std::once_flag isInstalled;
  std::call_once(isInstalled, [] {
    // Never destroyed: tensors refer to it.
    innerAllocator = c10::GetCPUAllocator();
    c10::SetCPUAllocator(new Allocator);
  });
}

TemporaryValues::~TemporaryValues() { areTemporary = before; }

bool torch_ltc::isPooled(const at::Tensor &value) {
  return value.nbytes() >= kLarge &&
         pooledValues().contains(value.const_data_ptr());
}
