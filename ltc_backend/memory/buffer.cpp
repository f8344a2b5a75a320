//===- buffer.cpp - Host memory behind lazy tensors -----------------------===//

#include "memory/buffer.h"

#include <ATen/core/Tensor.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <mutex>
#include <unordered_map>
#include <vector>

using namespace torch_ltc;

struct Buffer::Owner {
  at::Tensor tensor;
};

namespace {

constexpr size_t alignment = 64;
// The cache's initial limit in bytes; the limit grows with the peak of the
// memory in use.
constexpr int64_t freeCache = 64 << 20;

/// Rounds a size up to a multiple of an eighth of the power of two below it: at
/// most 12.5 % is wasted, and there are few enough different results that a
/// loop with changing sizes reuses memory.
size_t roundUp(size_t bytes) {
  bytes = std::max(bytes, alignment);
  size_t step = std::max(std::bit_floor(bytes) / 8, alignment);
  return (bytes + step - 1) / step * step;
}

/// Raises the size up to which glibc allocates from the heap. glibc maps each
/// larger allocation anew, and returns the end of the heap to the system if
/// more than twice that size is free. When a program frees a mapped allocation,
/// the limit grows to the size of this allocation. The pool seldom frees
/// memory, so the temporaries of CPU kernels would be mapped, and their pages
/// cleared, in each step. Therefore this function frees an allocation of the
/// largest size that raises the limit. No page of it is touched.
void raiseMappingLimit() {
  constexpr size_t largest = (size_t(32) << 20) - (64 << 10);
  // Without `volatile`, compilers remove the two calls, because the memory
  // isn't used.
  void *volatile memory = std::malloc(largest);
  std::free(memory);
}

class Pool {
public:
  Pool() { raiseMappingLimit(); }

  void *allocate(size_t bytes) {
    size_t size = roundUp(bytes);
    {
      std::lock_guard<std::mutex> lock(mutex);
      addLive(int64_t(size));
      std::vector<void *> &list = freeLists[size];
      if (!list.empty()) {
        void *memory = list.back();
        list.pop_back();
        statistics.cached -= int64_t(size);
        return memory;
      }
    }
    if (void *memory = std::aligned_alloc(alignment, size))
      return memory;
    release();
    if (void *memory = std::aligned_alloc(alignment, size))
      return memory;
    addLiveLocked(-int64_t(size));
    TORCH_CHECK(false, "Device 'lazy' is out of memory: ", size,
                " bytes couldn't be allocated; ", values().allocated,
                " bytes are in use by lazy tensors.");
  }

  void free(void *memory, size_t bytes) {
    size_t size = roundUp(bytes);
    {
      std::lock_guard<std::mutex> lock(mutex);
      addLive(-int64_t(size));
      if (statistics.cached + int64_t(size) <=
          std::max(freeCache, statistics.peak)) {
        freeLists[size].push_back(memory);
        statistics.cached += int64_t(size);
        return;
      }
    }
    std::free(memory);
  }

  void release() {
    std::lock_guard<std::mutex> lock(mutex);
    for (auto &entry : freeLists)
      for (void *memory : entry.second)
        std::free(memory);
    freeLists.clear();
    statistics.cached = 0;
  }

  MemoryStatistics values() {
    std::lock_guard<std::mutex> lock(mutex);
    return statistics;
  }

  void resetPeak() {
    std::lock_guard<std::mutex> lock(mutex);
    statistics.peak = statistics.allocated;
  }

  void addLiveLocked(int64_t bytes) {
    std::lock_guard<std::mutex> lock(mutex);
    addLive(bytes);
  }

private:
  void addLive(int64_t bytes) {
    statistics.allocated += bytes;
    statistics.peak = std::max(statistics.peak, statistics.allocated);
  }

  std::mutex mutex;
  std::unordered_map<size_t, std::vector<void *>> freeLists;
  MemoryStatistics statistics;
};

// Never destroyed: tensors may outlive static destruction.
Pool &pool() {
  static auto *instance = new Pool;
  return *instance;
}

} // namespace

Buffer::Buffer(void *memory, size_t bytes, std::unique_ptr<Owner> owner)
    : memory(memory), bytes(bytes), owner(std::move(owner)) {
  noteWrite();
}

void Buffer::noteWrite() {
  static std::atomic<uint64_t> last{0};
  contentsNumber = ++last;
}

bool Buffer::claimAddress(const void *holder) {
  const void *first = nullptr;
  return addressHolder.compare_exchange_strong(first, holder) ||
         first == holder;
}

BufferPtr Buffer::allocate(size_t bytes) {
  void *memory = pool().allocate(bytes);
  return BufferPtr(new Buffer(memory, bytes, nullptr));
}

BufferPtr Buffer::deferred(size_t bytes) {
  return BufferPtr(new Buffer(nullptr, bytes, nullptr));
}

void Buffer::materialize() {
  if (!memory)
    memory = pool().allocate(bytes);
}

BufferPtr Buffer::adopt(const at::Tensor &tensor) {
  pool().addLiveLocked(int64_t(tensor.nbytes()));
  return BufferPtr(new Buffer(tensor.data_ptr(), tensor.nbytes(),
                              std::make_unique<Owner>(Owner{tensor})));
}

Buffer::~Buffer() {
  if (owner)
    pool().addLiveLocked(-int64_t(bytes));
  else if (memory)
    pool().free(memory, bytes);
}

MemoryStatistics torch_ltc::memoryStatistics() { return pool().values(); }
void torch_ltc::resetPeakMemory() { pool().resetPeak(); }
void torch_ltc::releaseCachedMemory() { pool().release(); }
