//===- CacheDirectory.h - The cache's files -------------------------------===//
//
// Processes share the directory without a common lock: a file appears by
// rename, so a reader sees all of it or nothing, and removing a file that
// another process has already removed isn't an error. A file that is being
// written is locked (flock), so an unlocked temporary file was left by a
// process that was killed.
//
// Entries are machine code. Only the user and root may be able to write them,
// replace them, or replace a folder or a symlink on the path to them:
// everything on that path is checked.
//
//===----------------------------------------------------------------------===//

#ifndef TORCH_LTC_RUNTIME_CACHEDIRECTORY_H
#define TORCH_LTC_RUNTIME_CACHEDIRECTORY_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

namespace torch_ltc::runtime {

class CacheDirectory {
public:
  /// Creates the directory if it doesn't exist. If its files exceed `maxBytes`
  /// in total (0: no limit), removes the least recently used entries. The error
  /// says why the directory can't be used or trusted.
  static llvm::Expected<std::unique_ptr<CacheDirectory>>
  open(const std::string &path, uint64_t maxBytes);

  /// Returns all bytes of a file, which becomes the most recently used, or
  /// std::nullopt if there is no such file. The error says why the file isn't
  /// trusted ("can be written by other users").
  llvm::Expected<std::optional<std::string>> read(const std::string &name);
  void remove(const std::string &name);
  /// Writes a file atomically, then enforces the size limit.
  llvm::Error write(const std::string &name, llvm::StringRef bytes);

  std::string pathOf(const std::string &name) const {
    return path + "/" + name;
  }
  uint64_t bytes() const;
  uint64_t numEvictions() const;

private:
  CacheDirectory(std::string path, uint64_t maxBytes)
      : path(std::move(path)), maxBytes(maxBytes) {}

  llvm::Error writeTemporary(const std::string &temporary,
                             llvm::StringRef bytes,
                             const std::string &file) const;
  /// Counts the bytes of the files and removes the least recently used ones
  /// beyond the limit, and temporary files that killed processes left. Acquires
  /// `mutex`.
  void scan();

  const std::string path;
  const uint64_t maxBytes;
  mutable std::mutex mutex;
  uint64_t totalBytes = 0;
  uint64_t evictions = 0;
};

} // namespace torch_ltc::runtime

#endif // TORCH_LTC_RUNTIME_CACHEDIRECTORY_H
