//===- memory_pool.h - A cache of freed memory ------------------*- C++ -*-===//

#ifndef TORCH_LTC_MEMORY_MEMORY_POOL_H
#define TORCH_LTC_MEMORY_MEMORY_POOL_H

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <unordered_map>
#include <vector>

namespace torch_ltc {

struct MemoryStatistics {
  int64_t allocated = 0; // bytes of live buffers
  int64_t peak = 0;
  int64_t cached = 0; // bytes of freed memory in the pool
};

/// Allocates memory that is aligned to 64 bytes. Freed memory is cached, so
/// that a steady loop requests no memory from the system.
class MemoryPool {
public:
  MemoryPool();

  /// Returns uninitialized memory, or null if no memory is left.
  void *allocate(size_t bytes);
  /// `bytes`: the number that was passed to `allocate`.
  void free(void *memory, size_t bytes);

  /// To be called after each run of a program. Returns cached memory to the
  /// system that the last runs didn't need.
  void noteRun();
  /// To be called after `bytes` of a CPU tensor were copied to pool memory.
  void noteCopy(size_t bytes);
  /// Returns all cached memory to the system.
  void release();

  MemoryStatistics values();
  void resetPeak();
  /// Adds memory to the statistics that isn't the pool's.
  void addLive(int64_t bytes);

private:
  void addLiveLocked(int64_t bytes);
  int64_t cacheLimit() const;
  /// Returns whether it has returned any memory.
  bool shrinkCache(int64_t limit);

  std::mutex mutex;
  std::unordered_map<size_t, std::vector<void *>> freeLists;
  MemoryStatistics statistics;
  int numRuns = 0; // in the present period
  int runsOfPeriod = 2;
  int64_t peakOfPeriod = 0, peakBefore = 0;
  int64_t copied = 0, copiedAtTrim;
  bool mayHaveFreedCopies = false;
};

} // namespace torch_ltc

#endif // TORCH_LTC_MEMORY_MEMORY_POOL_H
