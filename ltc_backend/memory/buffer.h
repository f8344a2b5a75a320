//===- buffer.h - Host memory behind lazy tensors ---------------*- C++ -*-===//
//
// A `Buffer` owns contiguous, 64-byte aligned host memory (aligned as torch
// aligned it, if the memory is a CPU tensor's). Freed memory goes to a caching
// pool, so that a steady training loop asks the system for nothing.
//
//===----------------------------------------------------------------------===//

#ifndef TORCH_LTC_MEMORY_BUFFER_H
#define TORCH_LTC_MEMORY_BUFFER_H

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace at {
class Tensor;
}

namespace torch_ltc {

class Buffer {
public:
  /// Uninitialised memory from the pool.
  static std::shared_ptr<Buffer> allocate(size_t bytes);
  /// Gets its memory by `materialize`, when the step that fills it runs: until
  /// then what earlier steps hold may be freed.
  static std::shared_ptr<Buffer> deferred(size_t bytes);
  /// Shares the memory of `tensor`, which must be a contiguous CPU tensor that
  /// nobody else writes to as long as the buffer lives.
  static std::shared_ptr<Buffer> adopt(const at::Tensor &tensor);

  Buffer(const Buffer &) = delete;
  Buffer &operator=(const Buffer &) = delete;
  ~Buffer();

  /// Takes memory for a deferred buffer; nothing for others. Throws
  /// c10::Error where there is none. By one thread, before all others' `data`.
  void materialize();

  /// A number that no buffer of the process had before and that stands for
  /// what is in the memory. Who writes to a buffer that steps may have read
  /// calls `noteWrite`.
  uint64_t contents() const { return contentsNumber; }
  void noteWrite();

  /// Whether `holder`, a functional storage, may report this memory's address
  /// as its own: the first one that asks. Storages share a buffer because
  /// values are immutable; a program that compares addresses must not see it.
  bool claimAddress(const void *holder);

  void *data() const { return memory; }
  size_t size() const { return bytes; }

private:
  struct Owner;
  Buffer(void *memory, size_t bytes, std::unique_ptr<Owner> owner);

  void *memory; // null: deferred
  size_t bytes;
  uint64_t contentsNumber;
  std::atomic<const void *> addressHolder{nullptr};
  std::unique_ptr<Owner> owner; // null: the pool's
};

using BufferPtr = std::shared_ptr<Buffer>;

struct MemoryStatistics {
  int64_t allocated = 0; // bytes of live buffers
  int64_t peak = 0;
  int64_t cached = 0; // bytes kept for reuse
};

MemoryStatistics memoryStatistics();
void resetPeakMemory();
/// Gives the cached memory back to the system.
void releaseCachedMemory();

} // namespace torch_ltc

#endif // TORCH_LTC_MEMORY_BUFFER_H
