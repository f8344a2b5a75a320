//===- disk_cache.cpp - The runtime's cache with the configured options ---===//

#include "compilation/disk_cache.h"

#include "compilation/compiler_library.h"
#include "config/config.h"
#include "config/log.h"
#include "events/metrics.h"
#include "programs/program.h"
#include "programs/shared_library.h"

#include <atomic>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <unordered_set>

using namespace torch_ltc;

namespace {

struct CacheDeleter {
  void operator()(LtcCache cache) const { ltcCacheDestroy(cache); }
};

std::mutex cacheMutex;
std::string cacheProblem;

void warn(const char *message, void *) {
  {
    std::lock_guard<std::mutex> lock(cacheMutex);
    cacheProblem = message;
  }
  log(LogLevel::Warning, message);
}

/// A shared reference to a cache, so that a cache that is in use survives a
/// change of the options.
using CachePtr = std::shared_ptr<LtcCacheStorage>;

struct OpenCache {
  std::string directory;
  int64_t sizeMb = -1;
  uint64_t countedRejected = 0;
  CachePtr cache;
};

std::string configuredDirectory() {
  if (!config().cache.get())
    return "";
  std::string directory = config().cache_dir.get();
  return directory.empty() ? defaultCacheDirectory() : directory;
}

std::atomic<bool> isOpen{false};

OpenCache &openCache() {
  static auto *instance = new OpenCache;
  static std::mutex openMutex;
  std::lock_guard<std::mutex> lock(openMutex);
  std::string directory = configuredDirectory();
  int64_t sizeMb = config().cache_size_mb.get();
  if (instance->cache && instance->directory == directory &&
      instance->sizeMb == sizeMb)
    return *instance;
  LtcCacheOptions options{};
  options.directory = directory.c_str();
  options.max_bytes = uint64_t(sizeMb) << 20;
  options.warn = warn;
  std::string backend = backendLibraryPath(), compiler = compilerLibraryPath();
  const char *libraries[] = {backend.c_str(), compiler.c_str()};
  options.libraries = libraries;
  options.num_libraries = 2;
  LtcCache cache = nullptr;
  {
    std::lock_guard<std::mutex> problemLock(cacheMutex);
    cacheProblem.clear();
  }
  throwIfFailed(ltcCacheCreate(&options, &cache));
  instance->cache = CachePtr(cache, CacheDeleter());
  instance->directory = directory;
  instance->sizeMb = sizeMb;
  instance->countedRejected = 0;
  isOpen.store(true);
  return *instance;
}

CachePtr currentCache() { return openCache().cache; }

/// Counts the entries that the cache has rejected since the last call.
void countRejected() {
  OpenCache &open = openCache();
  uint64_t rejected = ltcCacheGetStatistics(open.cache.get()).rejected;
  std::lock_guard<std::mutex> lock(cacheMutex);
  count(Counter::cache_rejected, int64_t(rejected - open.countedRejected));
  open.countedRejected = rejected;
}

/// Prefixes of the file names of a folder's programs; empty if the folder can't
/// be read.
using EntryNames = std::unordered_set<std::string>;

const std::string programPrefix = "program-";
/// Number of hexadecimal digits of a key in the name of its file (runtime.h,
/// ltcCacheLookup).
constexpr size_t numNamedDigits = 16;

EntryNames entryNames(const std::string &directory) {
  EntryNames names;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(directory, error), end;
       !error && entry != end; entry.increment(error)) {
    std::string name = entry->path().filename().string();
    if (name.starts_with(programPrefix))
      names.insert(name.substr(0, programPrefix.size() + numNamedDigits));
  }
  return names;
}

/// Returns the key of a program: the graph's hash and everything else that
/// affects compilation.
std::string programKey(const Hash128 &hash) {
  return hash.text() + ";" + optionsWithEffect(OptionEffect::Code) +
         ltcCacheSalt() + ";" + TORCH_LTC_VERSION;
}

int lookupKernel(const char *key, size_t keySize, LtcBytes *object, void *) {
  int found = 0;
  LtcStatus status = ltcCacheLookup(currentCache().get(), LTC_CACHE_KERNEL, key,
                                    keySize, object, &found);
  ltcStatusDestroy(status);
  countRejected();
  return !status && found;
}

void storeKernel(const char *key, size_t keySize, const char *object,
                 size_t objectSize, void *) {
  // The cache reports a failed write through `warn`.
  ltcStatusDestroy(ltcCacheStore(currentCache().get(), LTC_CACHE_KERNEL, key,
                                 keySize, object, objectSize));
}

} // namespace

std::optional<std::string> torch_ltc::lookupProgram(const Hash128 &hash) {
  std::string key = programKey(hash);
  LtcBytes value{};
  int found = 0;
  throwIfFailed(ltcCacheLookup(currentCache().get(), LTC_CACHE_PROGRAM,
                               key.data(), key.size(), &value, &found));
  countRejected();
  if (!found)
    return std::nullopt;
  std::string bytes(value.data, value.size);
  ltcBytesDestroy(value);
  return bytes;
}

bool torch_ltc::mayHaveProgram(const Hash128 &hash) {
  if (isOpen.load())
    return true;
  static std::mutex mutex;
  static auto *directories = new std::map<std::string, EntryNames>;
  std::string directory = configuredDirectory();
  std::lock_guard<std::mutex> lock(mutex);
  auto [place, isNew] = directories->try_emplace(directory);
  if (isNew)
    place->second = entryNames(directory);
  return place->second.contains(programPrefix +
                                hash.text().substr(0, numNamedDigits));
}

void torch_ltc::storeProgram(const Hash128 &hash, const char *bytes,
                             size_t size) {
  std::string key = programKey(hash);
  ltcStatusDestroy(ltcCacheStore(currentCache().get(), LTC_CACHE_PROGRAM,
                                 key.data(), key.size(), bytes, size));
}

LtcKernelCache torch_ltc::kernelCache() {
  return {lookupKernel, storeKernel, nullptr};
}

CacheDescription torch_ltc::describeCache(bool open) {
  CacheDescription result;
  result.isOpen = open || isOpen.load();
  if (!result.isOpen) {
    result.directory = configuredDirectory();
    result.maxBytes = uint64_t(config().cache_size_mb.get()) << 20;
    return result;
  }
  OpenCache &cache = openCache();
  result.directory = cache.directory;
  result.maxBytes = uint64_t(cache.sizeMb) << 20;
  result.statistics = ltcCacheGetStatistics(cache.cache.get());
  std::lock_guard<std::mutex> lock(cacheMutex);
  result.problem = cacheProblem;
  return result;
}
