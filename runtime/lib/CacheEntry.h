//===- CacheEntry.h - One file of the cache -------------------------------===//
//
// Layout, little-endian:
//
//   offset  bytes
//        0      8  "LTCCACHE"
//        8      4  version of this layout
//       12      4  kind (LtcCacheKind)
//       16      8  xxh3 of the salt: ltcCacheSalt() and the libraries' builds
//       24      8  size of the key
//       32      8  size of the value
//       40      8  xxh3 of key and value
//       48         key, then value
//
//===----------------------------------------------------------------------===//

#ifndef TORCH_LTC_RUNTIME_CACHEENTRY_H
#define TORCH_LTC_RUNTIME_CACHEENTRY_H

#include "torch_ltc-c/runtime.h"

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <string>

namespace torch_ltc::runtime {

/// File name of an entry. It depends on the salt, so that different versions
/// and CPUs that share a directory don't overwrite each other's entries. A
/// program's file name repeats the first 16 characters of the key, as far as
/// they are hexadecimal digits, so that a reader of the directory can find a
/// program without this library.
std::string cacheFileName(LtcCacheKind kind, llvm::StringRef salt,
                          llvm::StringRef key);

/// The contents of an entry's file.
std::string encodeCacheEntry(LtcCacheKind kind, llvm::StringRef salt,
                             llvm::StringRef key, llvm::StringRef value);

/// The value in a file's bytes, or the reason why it is invalid ("is
/// truncated").
llvm::Expected<llvm::StringRef> decodeCacheEntry(llvm::StringRef file,
                                                 LtcCacheKind kind,
                                                 llvm::StringRef salt,
                                                 llvm::StringRef key);

} // namespace torch_ltc::runtime

#endif // TORCH_LTC_RUNTIME_CACHEENTRY_H
