//===- PackedWeightCache.h - A weight in packed order -----------*- C++ -*-===//
//
// Libraries reorder weights into a packed order. Reordering takes a third of
// the time of a small batch's inference, and without a cache each run repeats
// it even if the weight hasn't changed. A weight with the same contents in two
// consecutive runs is cached in packed order; a weight that changes in each run
// never is.
//
//===----------------------------------------------------------------------===//

#ifndef TORCH_LTC_RUNTIME_PACKEDWEIGHTCACHE_H
#define TORCH_LTC_RUNTIME_PACKEDWEIGHTCACHE_H

#include "Arena.h"

#include <cstddef>
#include <cstdint>
#include <memory>

namespace torch_ltc::runtime {

/// The cached copy of one weight. Contents are identified by ids, as in
/// `LtcRunArguments::parameter_contents`.
class PackedWeightCache {
public:
  PackedWeightCache() = default;
  PackedWeightCache(PackedWeightCache &&other) noexcept;
  PackedWeightCache &operator=(PackedWeightCache &&) = delete;
  ~PackedWeightCache();

  /// The packed weight with these contents, or null.
  char *find(uint64_t contents) const {
    return memory && contents == cachedContents ? memory->data() : nullptr;
  }

  /// Returns `bytes` bytes of memory, which the caller fills before it calls
  /// `setContents`; null if these contents are new or unknown, or no memory is
  /// available. To be called in each run in which `find` fails; frees the copy
  /// of the old contents.
  char *place(uint64_t contents, size_t bytes);

  /// Makes `find` return the memory that `place` returned, for these contents.
  void setContents(uint64_t contents) { cachedContents = contents; }

  /// Total bytes of all cached weights in the process.
  static size_t totalBytes();

private:
  void release();

  std::unique_ptr<Arena> memory;
  uint64_t cachedContents = 0;
  uint64_t lastContents = 0;
};

} // namespace torch_ltc::runtime

#endif // TORCH_LTC_RUNTIME_PACKEDWEIGHTCACHE_H
