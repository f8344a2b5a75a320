//===- memory_pool.cpp - A cache of freed memory --------------------------===//

#include "memory/memory_pool.h"

#include <malloc.h>
#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <utility>

using namespace torch_ltc;

namespace {

constexpr size_t alignment = 64;
// The cache may always have this size in bytes. Beyond that, the memory in use
// and the cache together may have the size of the recent peak.
constexpr int64_t freeCache = 64 << 20;
// The recent peak is that of the last one or two periods. The first steps of a
// loop often need more memory than the later ones, so the first periods are
// short: 2, 4, 8, then 16 runs.
constexpr int kRunsOfPeriod = 16;
// After this number of copied bytes, and whenever their number has doubled, the
// heap is trimmed: the program often frees what it has copied to the device, as
// `Module.to` does.
constexpr int64_t kCopiedBeforeTrim = 32 << 20;
// Memory of at least this size is mapped. On the heap, a small allocation takes
// a part of each gap that freed memory leaves, so that the gap is too small for
// a new request of the same size.
constexpr size_t mappedSize = 1 << 20;

/// Rounds a size up to a multiple of an eighth of the power of two below it: at
/// most 12.5 % is wasted, and there are few enough different results that a
/// loop with changing sizes reuses memory.
size_t roundUp(size_t bytes) {
  bytes = std::max(bytes, alignment);
  size_t step = std::max(std::bit_floor(bytes) / 8, alignment);
  return (bytes + step - 1) / step * step;
}

void *obtain(size_t bytes) {
  if (bytes < mappedSize)
    return std::aligned_alloc(alignment, bytes);
  void *memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return memory == MAP_FAILED ? nullptr : memory;
}

void releaseMemory(void *memory, size_t bytes) {
  if (bytes < mappedSize)
    std::free(memory);
  else
    munmap(memory, bytes);
}

} // namespace

MemoryPool::MemoryPool() : copiedAtTrim(kCopiedBeforeTrim) {}

void *MemoryPool::allocate(size_t bytes) {
  size_t size = roundUp(bytes);
  {
    std::lock_guard<std::mutex> lock(mutex);
    addLiveLocked(int64_t(size));
    std::vector<void *> &list = freeLists[size];
    if (!list.empty()) {
      void *memory = list.back();
      list.pop_back();
      statistics.cached -= int64_t(size);
      return memory;
    }
    // No cached memory has this size, so other sizes make room.
    shrinkCache(cacheLimit());
  }
  if (void *memory = obtain(size))
    return memory;
  release();
  if (void *memory = obtain(size))
    return memory;
  addLive(-int64_t(size));
  return nullptr;
}

void MemoryPool::free(void *memory, size_t bytes) {
  size_t size = roundUp(bytes);
  {
    std::lock_guard<std::mutex> lock(mutex);
    addLiveLocked(-int64_t(size));
    if (statistics.cached + int64_t(size) <= cacheLimit()) {
      freeLists[size].push_back(memory);
      statistics.cached += int64_t(size);
      return;
    }
  }
  releaseMemory(memory, size);
}

void MemoryPool::noteRun() {
  std::unique_lock<std::mutex> lock(mutex);
  bool mustTrim = std::exchange(mayHaveFreedCopies, false);
  if (++numRuns >= runsOfPeriod) {
    numRuns = 0;
    runsOfPeriod = std::min(2 * runsOfPeriod, kRunsOfPeriod);
    peakBefore = std::exchange(peakOfPeriod, statistics.allocated);
    mustTrim |= shrinkCache(cacheLimit());
  }
  lock.unlock(); // other threads may allocate while the heap is trimmed
  if (mustTrim)
    malloc_trim(0); // also returns memory between live allocations
}

void MemoryPool::noteCopy(size_t bytes) {
  std::unique_lock<std::mutex> lock(mutex);
  copied += int64_t(bytes);
  if (copied < copiedAtTrim)
    return;
  copiedAtTrim = 2 * copied;
  mayHaveFreedCopies = true;
  lock.unlock();
  malloc_trim(0);
}

void MemoryPool::release() {
  std::unique_lock<std::mutex> lock(mutex);
  const bool isShrunk = shrinkCache(0);
  lock.unlock();
  if (isShrunk)
    malloc_trim(0);
}

MemoryStatistics MemoryPool::values() {
  std::lock_guard<std::mutex> lock(mutex);
  return statistics;
}

void MemoryPool::resetPeak() {
  std::lock_guard<std::mutex> lock(mutex);
  statistics.peak = statistics.allocated;
}

void MemoryPool::addLive(int64_t bytes) {
  std::lock_guard<std::mutex> lock(mutex);
  addLiveLocked(bytes);
}

void MemoryPool::addLiveLocked(int64_t bytes) {
  statistics.allocated += bytes;
  statistics.peak = std::max(statistics.peak, statistics.allocated);
  peakOfPeriod = std::max(peakOfPeriod, statistics.allocated);
}

int64_t MemoryPool::cacheLimit() const {
  int64_t peak = std::max(peakOfPeriod, peakBefore);
  return std::max(freeCache, peak - statistics.allocated);
}

bool MemoryPool::shrinkCache(int64_t limit) {
  if (statistics.cached <= limit)
    return false;
  for (auto &[size, list] : freeLists)
    while (!list.empty() && statistics.cached > limit) {
      releaseMemory(list.back(), size);
      list.pop_back();
      statistics.cached -= int64_t(size);
    }
  return true;
}
