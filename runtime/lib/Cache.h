//===- Cache.h - Programs and kernels in memory and on disk ---------------===//

#ifndef TORCH_LTC_RUNTIME_CACHE_H
#define TORCH_LTC_RUNTIME_CACHE_H

#include "CacheDirectory.h"
#include "torch_ltc-c/runtime.h"

#include "llvm/ADT/StringRef.h"

#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <unordered_map>

namespace torch_ltc::runtime {

/// An in-memory cache, backed by a directory if one is given. Both hold at most
/// `maxBytes` (0: no limit) and evict the least recently used entries. Problems
/// with the directory never fail an operation: each kind is reported once, and
/// the in-memory cache continues to work.
class Cache {
public:
  using Warn = std::function<void(const std::string &)>;
  using Value = std::shared_ptr<const std::string>;

  /// `builds` distinguishes entries of different compiler builds; it must not
  /// contain NUL.
  Cache(const std::string &directory, uint64_t maxBytes, Warn warn,
        std::string builds = "");

  /// Returns null on a miss.
  Value lookup(LtcCacheKind kind, llvm::StringRef key);
  void store(LtcCacheKind kind, llvm::StringRef key, llvm::StringRef value);
  LtcCacheStatistics statistics() const;

private:
  struct Entry {
    std::string identity;
    Value value;
  };

  /// Prefix of every key of this cache.
  std::string salt() const { return std::string(ltcCacheSalt()) + builds; }
  Value findInMemory(const std::string &identity);
  void rememberInMemory(const std::string &identity, Value value);
  Value findOnDisk(LtcCacheKind kind, llvm::StringRef salt,
                   llvm::StringRef key);
  /// Reports `message` unless a problem of this `kind` has been
  /// reported.
  void warnOnce(const std::string &kind, const std::string &message);

  std::unique_ptr<CacheDirectory> directory;
  const uint64_t maxBytes;
  const Warn warn;
  const std::string builds;

  mutable std::mutex mutex;
  /// Most recently used first.
  std::list<Entry> entries;
  std::unordered_map<std::string, std::list<Entry>::iterator> index;
  uint64_t memoryBytes = 0;
  std::set<std::string> warned;
  LtcCacheStatistics counts = {};
};

} // namespace torch_ltc::runtime

#endif // TORCH_LTC_RUNTIME_CACHE_H
