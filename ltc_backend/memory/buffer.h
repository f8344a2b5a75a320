//===- buffer.h - Host memory behind lazy tensors ---------------*- C++ -*-===//
//
// A `Buffer` owns contiguous, 64-byte aligned host memory (with torch's
// alignment if the memory is a CPU tensor's). Freed memory goes to a caching
// pool, so that a steady training loop requests no memory from the system.
//
//===----------------------------------------------------------------------===//

#ifndef TORCH_LTC_MEMORY_BUFFER_H
#define TORCH_LTC_MEMORY_BUFFER_H

#include "memory/memory_pool.h"

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
  /// Allocates uninitialized memory from the pool.
  static std::shared_ptr<Buffer> allocate(size_t bytes);
  /// Creates a buffer without memory. `materialize` allocates it when the step
  /// that fills the buffer runs: until then, buffers of earlier steps may be
  /// freed.
  static std::shared_ptr<Buffer> deferred(size_t bytes);
  /// Shares the memory of `tensor`, which must be a contiguous CPU tensor that
  /// nobody else writes during the lifetime of the buffer.
  static std::shared_ptr<Buffer> adopt(const at::Tensor &tensor);

  Buffer(const Buffer &) = delete;
  Buffer &operator=(const Buffer &) = delete;
  ~Buffer();

  /// Allocates memory for a deferred buffer; has no effect on others. Throws
  /// c10::Error if no memory is left. One thread must call it before any other
  /// thread calls `data`.
  void materialize();
  /// Gives a deferred buffer the memory of `tensor`, which must be a contiguous
  /// CPU tensor of the buffer's size; nobody else may write to the memory
  /// during the lifetime of the buffer. `isPooled`: whether the memory is the
  /// pool's. Replaces `materialize`.
  void take(const at::Tensor &tensor, bool isPooled);

  /// A number, unique in the process, that identifies the contents of the
  /// memory. Code that writes to a buffer must call `noteWrite` if steps may
  /// have read the buffer.
  uint64_t contents() const { return contentsNumber; }
  void noteWrite();

  /// Whether `holder`, a functional storage, may report this memory's address
  /// as its own: only the first storage that asks may. Storages share a buffer
  /// because values are immutable, but a program that compares addresses must
  /// not notice that.
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
  std::unique_ptr<Owner> owner; // null: the memory is the pool's
};

using BufferPtr = std::shared_ptr<Buffer>;

/// The pool of all buffers, and of the large values that an op-by-op run
/// computes, but doesn't return.
MemoryPool &memoryPool();

} // namespace torch_ltc

#endif // TORCH_LTC_MEMORY_BUFFER_H
