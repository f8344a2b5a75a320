//===- disk_cache.h - The cache that options configure ----------*- C++ -*-===//

#ifndef TORCH_LTC_COMPILATION_DISK_CACHE_H
#define TORCH_LTC_COMPILATION_DISK_CACHE_H

#include "ir/hash.h"

#include "torch_ltc-c/lowering.h"
#include "torch_ltc-c/runtime.h"

#include <optional>
#include <string>

namespace torch_ltc {

/// The serialized executable stored for a program, if there is one.
std::optional<std::string> lookupProgram(const Hash128 &hash);
/// Whether the cache may have an entry for the program. Until the cache is
/// open, the answer depends on the names of the files that the folder contained
/// at the first call, so that the runtime isn't loaded for programs that were
/// never compiled. `lookupProgram` also finds entries that other processes have
/// stored since.
bool mayHaveProgram(const Hash128 &hash);
void storeProgram(const Hash128 &hash, const char *bytes, size_t size);

/// The compiler's interface to the cache, which also stores kernels.
LtcKernelCache kernelCache();

struct CacheDescription {
  std::string directory; // "" if the disk isn't used
  std::string problem;   // last problem with the folder, "" if none is known
  uint64_t maxBytes = 0;
  bool isOpen = false;
  LtcCacheStatistics statistics{}; // zero unless open
};
/// Describes the configured cache. Opening it loads the runtime, so a cache
/// that no program has needed yet is only opened if `open` is set.
CacheDescription describeCache(bool open);

} // namespace torch_ltc

#endif // TORCH_LTC_COMPILATION_DISK_CACHE_H
