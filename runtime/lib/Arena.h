//===- Arena.h - Memory of one run ----------------------------------------===//
//
// One arena holds all temporaries of one run at offsets planned when the
// program was compiled or bound. Arenas are reused across steps and programs,
// because fresh pages (page faults, zeroing) cost more than most kernels.
//
//===----------------------------------------------------------------------===//

#ifndef TORCH_LTC_RUNTIME_ARENA_H
#define TORCH_LTC_RUNTIME_ARENA_H

#include "llvm/Support/Error.h"

#include <cstddef>
#include <memory>
#include <mutex>
#include <vector>

namespace torch_ltc::runtime {

/// Alignment in bytes of arenas, of offsets in arenas and of constants: the
/// size of a cache line and of the widest vector.
inline constexpr size_t kAlignment = 64;

inline size_t alignedSize(size_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

class Arena {
public:
  /// Returns zero-filled memory, or an error that contains the size.
  static llvm::Expected<std::unique_ptr<Arena>> create(size_t bytes);
  ~Arena();
  Arena(const Arena &) = delete;
  Arena &operator=(const Arena &) = delete;

  char *data() const { return base; }
  size_t size() const { return bytes; }

private:
  Arena(void *mapping, size_t mappedBytes, char *base, size_t bytes)
      : mapping(mapping), mappedBytes(mappedBytes), base(base), bytes(bytes) {}

  void *mapping;
  size_t mappedBytes;
  char *base;
  size_t bytes;
};

/// Arenas that no run currently uses, shared by all executables of the process.
/// The number of live arenas never exceeds the maximum number of simultaneous
/// runs so far: if all idle arenas are too small for a request, a new arena
/// replaces the largest of them.
class ArenaPool {
public:
  static ArenaPool &process();

  /// Returns an arena of at least `bytes` with undefined contents; `release`
  /// gives it back to the pool.
  llvm::Expected<std::unique_ptr<Arena>> acquire(size_t bytes);
  void release(std::unique_ptr<Arena> arena);

  /// Bytes of idle arenas.
  size_t idleBytes();
  /// Bytes of idle arenas and of those in use.
  size_t bytes();
  /// Number of arenas ever created.
  size_t numCreated();

private:
  std::mutex mutex;
  std::vector<std::unique_ptr<Arena>> idle;
  size_t created = 0, mapped = 0;
};

} // namespace torch_ltc::runtime

#endif // TORCH_LTC_RUNTIME_ARENA_H
