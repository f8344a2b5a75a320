//===- disk_cache.cpp - The runtime's cache with the configured options ---===//

#include "compilation/disk_cache.h"

#include "compilation/compiler_library.h"
#include "config/config.h"
#include "config/log.h"
#include "events/metrics.h"
#include "memory/blocking.h"
#include "programs/program.h"
#include "programs/shared_library.h"

#include <c10/util/ScopeExit.h>

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

/// While this thread creates a cache, collects the cache's messages; null
/// otherwise. They are logged afterwards, because a log handler may use the
/// cache.
thread_local std::vector<std::string> *heldMessages = nullptr;

void warn(const char *message, void *) {
  {
    std::lock_guard<std::mutex> lock(cacheMutex);
    cacheProblem = message;
  }
  if (heldMessages)
    heldMessages->emplace_back(message);
  else
    log(LogLevel::Warning, message);
}

/// A cache with the options that it was created for. It is shared, so that a
/// cache that is in use survives a change of the options.
struct OpenCache {
  OpenCache(std::string directory, int64_t sizeMb)
      : directory(std::move(directory)), sizeMb(sizeMb) {}

  const std::string directory;
  const int64_t sizeMb;
  std::unique_ptr<LtcCacheStorage, CacheDeleter> cache;
  uint64_t countedRejected = 0; // guarded by cacheMutex
};
using OpenCachePtr = std::shared_ptr<OpenCache>;

std::string configuredDirectory() {
  if (!config().cache.get())
    return "";
  std::string directory = config().cache_dir.get();
  return directory.empty() ? defaultCacheDirectory() : directory;
}

std::atomic<bool> isOpen{false};

OpenCachePtr create(std::string directory, int64_t sizeMb,
                    std::vector<std::string> &messages) {
  auto made = std::make_shared<OpenCache>(std::move(directory), sizeMb);
  LtcCacheOptions options{};
  options.directory = made->directory.c_str();
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
  {
    heldMessages = &messages;
    auto release = c10::make_scope_exit([] { heldMessages = nullptr; });
    throwIfFailed(ltcCacheCreate(&options, &cache));
  }
  made->cache.reset(cache);
  return made;
}

/// Returns the cache for the current options.
OpenCachePtr openCache() {
  static auto *current = new OpenCachePtr;
  static std::mutex currentMutex, creationMutex;
  std::string directory = configuredDirectory();
  int64_t sizeMb = config().cache_size_mb.get();
  auto find = [&] {
    std::lock_guard<std::mutex> lock(currentMutex);
    OpenCachePtr found = *current;
    if (found && (found->directory != directory || found->sizeMb != sizeMb))
      found = nullptr;
    return found;
  };
  if (OpenCachePtr found = find())
    return found;
  std::vector<std::string> messages;
  OpenCachePtr made;
  {
    BlockingScope blocking;
    std::lock_guard<std::mutex> creation(creationMutex);
    if (OpenCachePtr found = find())
      return found;
    made = create(directory, sizeMb, messages);
    std::lock_guard<std::mutex> lock(currentMutex);
    *current = made;
    isOpen.store(true);
  }
  for (const std::string &message : messages)
    log(LogLevel::Warning, message);
  return made;
}

/// Counts the entries that the cache has rejected since the last call.
void countRejected() {
  OpenCachePtr open = openCache();
  std::lock_guard<std::mutex> lock(cacheMutex);
  uint64_t rejected = ltcCacheGetStatistics(open->cache.get()).rejected;
  count(Counter::cache_rejected, int64_t(rejected - open->countedRejected));
  open->countedRejected = rejected;
}

/// The beginnings of the names of a folder's program files; empty if the folder
/// can't be read.
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
  LtcStatus status = ltcCacheLookup(openCache()->cache.get(), LTC_CACHE_KERNEL,
                                    key, keySize, object, &found);
  ltcStatusDestroy(status);
  countRejected();
  return !status && found;
}

void storeKernel(const char *key, size_t keySize, const char *object,
                 size_t objectSize, void *) {
  // The cache reports a failed write through `warn`.
  ltcStatusDestroy(ltcCacheStore(openCache()->cache.get(), LTC_CACHE_KERNEL,
                                 key, keySize, object, objectSize));
}

} // namespace

std::optional<std::string> torch_ltc::lookupProgram(const Hash128 &hash) {
  std::string key = programKey(hash);
  LtcBytes value{};
  int found = 0;
  throwIfFailed(ltcCacheLookup(openCache()->cache.get(), LTC_CACHE_PROGRAM,
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
  ltcStatusDestroy(ltcCacheStore(openCache()->cache.get(), LTC_CACHE_PROGRAM,
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
  OpenCachePtr cache = openCache();
  result.directory = cache->directory;
  result.maxBytes = uint64_t(cache->sizeMb) << 20;
  result.statistics = ltcCacheGetStatistics(cache->cache.get());
  std::lock_guard<std::mutex> lock(cacheMutex);
  result.problem = cacheProblem;
  return result;
}
