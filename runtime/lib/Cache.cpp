//===- Cache.cpp - Programs and kernels in memory and on disk -------------===//

#include "Cache.h"

#include "CacheEntry.h"
#include "Diagnostics.h"

using namespace torch_ltc::runtime;

Cache::Cache(const std::string &path, uint64_t maxBytes, Warn warn,
             std::string builds)
    : maxBytes(maxBytes), warn(std::move(warn)), builds(std::move(builds)) {
  if (path.empty())
    return;
  auto opened = CacheDirectory::open(path, maxBytes);
  if (opened)
    directory = std::move(*opened);
  else
    warnOnce("open", llvm::formatv("The cache directory '{0}' can't be used: "
                                   "{1}. Compiled programs are kept in memory "
                                   "only; set another directory.",
                                   path, llvm::toString(opened.takeError())));
}

void Cache::warnOnce(const std::string &kind, const std::string &message) {
  {
    std::lock_guard<std::mutex> lock(mutex);
    if (!warned.insert(kind).second)
      return;
  }
  if (warn)
    warn(message);
}

/// Returns the key of an entry in `Cache::index`.
static std::string identityOf(LtcCacheKind kind, llvm::StringRef salt,
                              llvm::StringRef key) {
  std::string identity(1, char('0' + kind));
  identity.append(salt.data(), salt.size());
  identity.push_back('\0');
  identity.append(key.data(), key.size());
  return identity;
}

Cache::Value Cache::findInMemory(const std::string &identity) {
  std::lock_guard<std::mutex> lock(mutex);
  auto found = index.find(identity);
  if (found == index.end())
    return nullptr;
  entries.splice(entries.begin(), entries, found->second);
  ++counts.memory_hits;
  return found->second->value;
}

void Cache::rememberInMemory(const std::string &identity, Value value) {
  std::lock_guard<std::mutex> lock(mutex);
  auto found = index.find(identity);
  if (found != index.end()) {
    memoryBytes -= found->second->value->size();
    memoryBytes += value->size();
    found->second->value = std::move(value);
    entries.splice(entries.begin(), entries, found->second);
  } else {
    memoryBytes += identity.size() + value->size();
    entries.push_front({identity, std::move(value)});
    index[identity] = entries.begin();
  }
  // The newest entry stays, whatever its size.
  while (maxBytes && memoryBytes > maxBytes && entries.size() > 1) {
    const Entry &oldest = entries.back();
    memoryBytes -= oldest.identity.size() + oldest.value->size();
    index.erase(oldest.identity);
    entries.pop_back();
    // If there is a directory, only its evictions are counted.
    counts.evictions += !directory;
  }
}

Cache::Value Cache::findOnDisk(LtcCacheKind kind, llvm::StringRef salt,
                               llvm::StringRef key) {
  std::string name = cacheFileName(kind, salt, key);
  auto file = directory->read(name);
  if (file && !*file)
    return nullptr;
  llvm::Expected<llvm::StringRef> value =
      file ? decodeCacheEntry(**file, kind, salt, key)
           : llvm::Expected<llvm::StringRef>(file.takeError());
  if (value)
    return std::make_shared<const std::string>(value->str());
  directory->remove(name);
  {
    std::lock_guard<std::mutex> lock(mutex);
    ++counts.rejected;
  }
  warnOnce("rejected",
           llvm::formatv("The cache entry '{0}' {1}: it was removed and is "
                         "compiled again.",
                         directory->pathOf(name),
                         llvm::toString(value.takeError())));
  return nullptr;
}

Cache::Value Cache::lookup(LtcCacheKind kind, llvm::StringRef key) {
  std::string salt = this->salt();
  std::string identity = identityOf(kind, salt, key);
  if (Value value = findInMemory(identity))
    return value;
  Value value = directory ? findOnDisk(kind, salt, key) : nullptr;
  if (value)
    rememberInMemory(identity, value);
  std::lock_guard<std::mutex> lock(mutex);
  ++(value ? counts.disk_hits : counts.misses);
  return value;
}

void Cache::store(LtcCacheKind kind, llvm::StringRef key,
                  llvm::StringRef value) {
  std::string salt = this->salt();
  rememberInMemory(identityOf(kind, salt, key),
                   std::make_shared<const std::string>(value.str()));
  {
    std::lock_guard<std::mutex> lock(mutex);
    ++counts.stores;
  }
  if (!directory)
    return;
  std::string name = cacheFileName(kind, salt, key);
  if (llvm::Error error =
          directory->write(name, encodeCacheEntry(kind, salt, key, value)))
    warnOnce("write",
             llvm::formatv("The cache can't write '{0}': {1}. What is compiled "
                           "from now on may be compiled again by the next "
                           "process.",
                           directory->pathOf(name),
                           llvm::toString(std::move(error))));
}

LtcCacheStatistics Cache::statistics() const {
  std::lock_guard<std::mutex> lock(mutex);
  LtcCacheStatistics result = counts;
  if (directory) {
    result.disk_bytes = directory->bytes();
    result.evictions += directory->numEvictions();
  }
  return result;
}
