//===- CacheApi.cpp - C API of the caches ---------------------------------===//

#include "BuildId.h"
#include "Cache.h"
#include "Diagnostics.h"
#include "torch_ltc-c/runtime.h"

using namespace torch_ltc::runtime;

struct LtcCacheStorage {
  LtcCacheStorage(const std::string &directory, uint64_t maxBytes,
                  Cache::Warn warn, std::string builds)
      : cache(directory, maxBytes, std::move(warn), std::move(builds)) {}

  Cache cache;
};

LtcStatus ltcCacheCreate(const LtcCacheOptions *options, LtcCache *cache) {
  *cache = nullptr;
  return guarded([&] {
    LtcCacheOptions given = options ? *options : LtcCacheOptions();
    Cache::Warn warn;
    if (given.warn)
      warn = [given](const std::string &message) {
        given.warn(message.c_str(), given.user_data);
      };
    std::string builds;
    for (size_t i = 0; i < given.num_libraries; ++i)
      builds += " " + buildIdOfFile(given.libraries[i]);
    *cache = new LtcCacheStorage(given.directory ? given.directory : "",
                                 given.max_bytes, std::move(warn),
                                 std::move(builds));
    return llvm::Error::success();
  });
}

void ltcCacheDestroy(LtcCache cache) { delete cache; }

LtcStatus ltcCacheLookup(LtcCache cache, LtcCacheKind kind, const char *key,
                         size_t keySize, LtcBytes *value, int *found) {
  *value = {nullptr, 0};
  *found = 0;
  return guarded([&]() -> llvm::Error {
    Cache::Value hit = cache->cache.lookup(kind, llvm::StringRef(key, keySize));
    if (!hit)
      return llvm::Error::success();
    *value = ltcBytesCreate(hit->data(), hit->size());
    if (!value->data)
      throw std::bad_alloc();
    *found = 1;
    return llvm::Error::success();
  });
}

LtcStatus ltcCacheStore(LtcCache cache, LtcCacheKind kind, const char *key,
                        size_t keySize, const char *value, size_t valueSize) {
  return guarded([&]() -> llvm::Error {
    cache->cache.store(kind, llvm::StringRef(key, keySize),
                       llvm::StringRef(value, valueSize));
    return llvm::Error::success();
  });
}

LtcCacheStatistics ltcCacheGetStatistics(LtcCache cache) {
  return cache->cache.statistics();
}
