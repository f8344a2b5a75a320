//===- disk_cache.h - The runtime's cache as configured ---------*- C++ -*-===//

#ifndef TORCH_LTC_COMPILATION_DISK_CACHE_H
#define TORCH_LTC_COMPILATION_DISK_CACHE_H

#include "ir/hash.h"

#include "torch_ltc-c/lowering.h"
#include "torch_ltc-c/runtime.h"

#include <optional>
#include <string>

namespace torch_ltc {

/// The serialised executable stored for a program, if there is one.
std::optional<std::string> lookupProgram(const Hash128 &hash);
/// Whether an entry for the graph was there when the process first asked, whose
/// name says so: the runtime isn't loaded for programs that were never
/// compiled. `lookupProgram` finds what other processes stored since.
bool mayHaveProgram(const Hash128 &hash);
void storeProgram(const Hash128 &hash, const char *bytes, size_t size);

/// For the compiler: kernels in the same store.
LtcKernelCache kernelCache();

struct CacheDescription {
  std::string directory; // "" when the disk isn't used
  std::string problem;   // why it can't be written, "" if it can
  uint64_t maxBytes = 0;
  bool isOpen = false;
  LtcCacheStatistics statistics{}; // zero unless open
};
/// As configured. Opening the cache loads the runtime, so one that no program
/// has needed yet is opened only if the caller asks for it.
CacheDescription describeCache(bool open);

} // namespace torch_ltc

#endif // TORCH_LTC_COMPILATION_DISK_CACHE_H
