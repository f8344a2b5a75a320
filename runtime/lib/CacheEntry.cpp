//===- CacheEntry.cpp - One file of the cache -----------------------------===//

#include "CacheEntry.h"

#include "Diagnostics.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/xxhash.h"

using namespace torch_ltc::runtime;
using namespace llvm::support;

namespace {

constexpr char kMagic[] = "LTCCACHE";
constexpr uint32_t kLayoutVersion = 1;
constexpr size_t kHeaderBytes = 48;

const char *kindName(LtcCacheKind kind) {
  return kind == LTC_CACHE_PROGRAM ? "program" : "kernel";
}

} // namespace

std::string torch_ltc::runtime::cacheFileName(LtcCacheKind kind,
                                              llvm::StringRef salt,
                                              llvm::StringRef key) {
  // The salt has no NUL, so the concatenation is unambiguous.
  std::string identity = (salt + llvm::StringRef("\0", 1) + key).str();
  llvm::XXH128_hash_t hash =
      llvm::xxh3_128bits(llvm::arrayRefFromStringRef(identity));
  llvm::StringRef tag = kind == LTC_CACHE_PROGRAM
                            ? key.take_front(16).take_while(llvm::isHexDigit)
                            : llvm::StringRef();
  return llvm::formatv("{0}-{1}{2}{3:x-16}{4:x-16}.ltc", kindName(kind), tag,
                       tag.empty() ? "" : "-", hash.high64, hash.low64);
}

std::string torch_ltc::runtime::encodeCacheEntry(LtcCacheKind kind,
                                                 llvm::StringRef salt,
                                                 llvm::StringRef key,
                                                 llvm::StringRef value) {
  std::string file(kHeaderBytes, '\0');
  file.reserve(kHeaderBytes + key.size() + value.size());
  file.append(key.data(), key.size());
  file.append(value.data(), value.size());
  char *header = file.data();
  std::memcpy(header, kMagic, 8);
  endian::write32le(header + 8, kLayoutVersion);
  endian::write32le(header + 12, kind);
  endian::write64le(header + 16, llvm::xxh3_64bits(salt));
  endian::write64le(header + 24, key.size());
  endian::write64le(header + 32, value.size());
  endian::write64le(
      header + 40,
      llvm::xxh3_64bits(llvm::StringRef(file).drop_front(kHeaderBytes)));
  return file;
}

llvm::Expected<llvm::StringRef>
torch_ltc::runtime::decodeCacheEntry(llvm::StringRef file, LtcCacheKind kind,
                                     llvm::StringRef salt,
                                     llvm::StringRef key) {
  if (file.size() < kHeaderBytes)
    return failure("is truncated");
  const char *header = file.data();
  if (std::memcmp(header, kMagic, 8) != 0)
    return failure("isn't a cache entry");
  if (endian::read32le(header + 8) != kLayoutVersion ||
      endian::read64le(header + 16) != llvm::xxh3_64bits(salt))
    return failure("comes from another version or CPU");
  uint64_t keySize = endian::read64le(header + 24);
  uint64_t valueSize = endian::read64le(header + 32);
  llvm::StringRef body = file.drop_front(kHeaderBytes);
  if (keySize > body.size() || valueSize != body.size() - keySize)
    return failure("is truncated");
  if (endian::read64le(header + 40) != llvm::xxh3_64bits(body))
    return failure("is corrupt");
  if (endian::read32le(header + 12) != uint32_t(kind) ||
      body.take_front(keySize) != key)
    return failure("belongs to another key");
  return body.drop_front(keySize);
}
