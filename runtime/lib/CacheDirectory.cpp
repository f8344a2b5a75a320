//===- CacheDirectory.cpp - The cache's files -----------------------------===//

#include "CacheDirectory.h"

#include "Diagnostics.h"

#include "llvm/Support/FileSystem.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <ctime>
#include <deque>
#include <dirent.h>
#include <fcntl.h>
#include <filesystem>
#include <sys/file.h>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>
#include <utility>
#include <vector>

using namespace torch_ltc::runtime;

namespace {

constexpr char kSuffix[] = ".ltc";
constexpr char kTemporaryPrefix[] = "tmp-";
// A program is a protobuf message, which must stay below 2 GB; key and header
// are small.
constexpr off_t kMaxFileBytes = off_t(1) << 31;
constexpr int kMaxLinks = 40;

std::string systemMessage(int code) {
  return std::generic_category().message(code);
}

/// Owns a file descriptor.
struct File {
  explicit File(int descriptor) : descriptor(descriptor) {}
  ~File() {
    if (descriptor >= 0)
      ::close(descriptor);
  }
  File(const File &) = delete;
  File &operator=(const File &) = delete;
  int descriptor;
};

bool isTrustedOwner(const struct stat &status) {
  return status.st_uid == geteuid() || status.st_uid == 0;
}

/// Fails if another user could replace something in this folder, which is the
/// cache or a folder on the path to it. In a folder with the sticky bit (/tmp),
/// others can add files but not replace ours, which is safe unless the folder
/// is the cache.
llvm::Error checkFolder(const std::string &path, const struct stat &status,
                        bool isCache) {
  if (!S_ISDIR(status.st_mode))
    return failure("'{0}' is not a directory", path);
  if (!isTrustedOwner(status))
    return failure("'{0}' belongs to another user, who could insert code",
                   path);
  bool isSticky = (status.st_mode & S_ISVTX) && !isCache;
  if ((status.st_mode & S_IWOTH) && !isSticky)
    return failure(
        "every user may write to '{0}', and so could put code in it: "
        "remove the permission with 'chmod o-w'",
        path);
  if ((status.st_mode & S_IWGRP) && !isSticky)
    return failure("its group may write to '{0}', and so could put code in it: "
                   "remove the permission with 'chmod g-w'",
                   path);
  return llvm::Error::success();
}

/// Returns the directory's path without symlinks, or an error unless everything
/// on the path is trusted.
llvm::Expected<std::string> resolveTrusted(const std::string &path) {
  namespace fs = std::filesystem;
  std::error_code code;
  fs::path absolute = fs::absolute(path, code).lexically_normal();
  if (code)
    return failure("{0}", code.message());
  std::deque<std::string> rest;
  auto pushFront = [&](const fs::path &parts) {
    std::vector<std::string> names;
    for (const fs::path &part : parts.relative_path())
      if (!part.empty())
        names.push_back(part.string());
    rest.insert(rest.begin(), names.begin(), names.end());
  };
  pushFront(absolute);
  fs::path current = "/";
  int numLinks = 0;
  for (;;) {
    struct stat status;
    if (lstat(current.c_str(), &status) != 0)
      return failure("{0}", systemMessage(errno));
    if (S_ISLNK(status.st_mode)) {
      if (!isTrustedOwner(status))
        return failure("the link '{0}' isn't the user's", current.string());
      if (++numLinks > kMaxLinks)
        return failure("{0}", systemMessage(ELOOP));
      fs::path target = fs::read_symlink(current, code);
      if (code)
        return failure("{0}", code.message());
      current = target.is_absolute() ? fs::path("/") : current.parent_path();
      pushFront(target);
      continue;
    }
    if (llvm::Error error =
            checkFolder(current.string(), status, /*isCache=*/rest.empty()))
      return error;
    if (rest.empty())
      return current.string();
    std::string next = std::move(rest.front());
    rest.pop_front();
    if (next == "..") // in a symlink's target
      current = current.parent_path();
    else if (next != ".")
      current /= next;
  }
}

/// Checks an open entry: it could be a FIFO, another user's file, or a file
/// that another user wrote before the folder was made safe.
llvm::Error checkEntry(const struct stat &status) {
  if (!S_ISREG(status.st_mode))
    return failure("is not a regular file");
  if (!isTrustedOwner(status))
    return failure("belongs to another user");
  if (status.st_mode & (S_IWGRP | S_IWOTH))
    return failure("can be written by other users");
  if (status.st_size > kMaxFileBytes)
    return failure("has {0} bytes, more than allowed", status.st_size);
  return llvm::Error::success();
}

/// Removes a temporary file if the process that wrote it has ended. A process
/// that has created the file, but not yet locked it, can only lock it after its
/// removal, and so notices that.
bool removeAbandoned(const std::string &temporary) {
  File file(::open(temporary.c_str(),
                   O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  return file.descriptor >= 0 &&
         flock(file.descriptor, LOCK_EX | LOCK_NB) == 0 &&
         unlink(temporary.c_str()) == 0;
}

} // namespace

llvm::Expected<std::unique_ptr<CacheDirectory>>
CacheDirectory::open(const std::string &path, uint64_t maxBytes) {
  std::error_code code;
  if (!std::filesystem::exists(path, code)) {
    // Whatever the umask, no other user can write to the created folders, which
    // may include parent folders.
    if (std::error_code failed = llvm::sys::fs::create_directories(
            path, /*IgnoreExisting=*/true, llvm::sys::fs::owner_all))
      return failure("{0}", failed.message());
    chmod(path.c_str(), 0700);
  }
  auto resolved = resolveTrusted(path);
  if (!resolved)
    return resolved.takeError();
  std::unique_ptr<CacheDirectory> directory(
      new CacheDirectory(std::move(*resolved), maxBytes));
  directory->scan();
  return directory;
}

llvm::Expected<std::optional<std::string>>
CacheDirectory::read(const std::string &name) {
  // Without O_NONBLOCK, opening a FIFO would wait for its writer.
  File file(::open(pathOf(name).c_str(),
                   O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  struct stat status;
  if (file.descriptor < 0 || fstat(file.descriptor, &status) != 0)
    return std::nullopt;
  if (llvm::Error error = checkEntry(status))
    return error;
  std::string bytes(status.st_size, '\0');
  size_t done = 0;
  while (done < bytes.size()) {
    ssize_t count =
        ::read(file.descriptor, bytes.data() + done, bytes.size() - done);
    if (count < 0 && errno == EINTR)
      continue;
    if (count <= 0)
      break;
    done += count;
  }
  bytes.resize(done);
  // The modification time stores the last use, because many file systems don't
  // maintain access times. futimens fails in a read-only directory, where
  // nothing is removed either.
  futimens(file.descriptor, nullptr);
  return bytes;
}

void CacheDirectory::remove(const std::string &name) {
  struct stat status;
  std::string file = pathOf(name);
  if (stat(file.c_str(), &status) != 0 || unlink(file.c_str()) != 0)
    return;
  std::lock_guard<std::mutex> lock(mutex);
  totalBytes -= std::min<uint64_t>(totalBytes, status.st_size);
}

/// Writes the file `temporary`, which stays locked until it has been renamed to
/// `name`.
llvm::Error CacheDirectory::writeTemporary(const std::string &temporary,
                                           llvm::StringRef bytes,
                                           const std::string &name) const {
  File file(-1);
  struct stat status = {};
  // Create the file again if another process has removed it. Until the file is
  // locked, it looks like one that a killed process left.
  while (status.st_nlink == 0) {
    if (file.descriptor >= 0)
      ::close(file.descriptor);
    file.descriptor =
        ::open(temporary.c_str(),
               O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (file.descriptor < 0 || flock(file.descriptor, LOCK_EX) != 0 ||
        fstat(file.descriptor, &status) != 0)
      return failure("{0}", systemMessage(errno));
  }
  while (!bytes.empty()) {
    ssize_t count = ::write(file.descriptor, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR)
      continue;
    if (count < 0)
      return failure("{0}", systemMessage(errno));
    bytes = bytes.drop_front(count);
  }
  // Some file systems report a full disk or quota only when the file is closed;
  // a duplicate descriptor keeps the lock until the file is renamed.
  File lock(fcntl(file.descriptor, F_DUPFD_CLOEXEC, 0));
  if (::close(std::exchange(file.descriptor, -1)) != 0 ||
      rename(temporary.c_str(), name.c_str()) != 0)
    return failure("{0}", systemMessage(errno));
  return llvm::Error::success();
}

llvm::Error CacheDirectory::write(const std::string &name,
                                  llvm::StringRef bytes) {
  if (maxBytes && bytes.size() > maxBytes)
    return failure("an entry of {0} bytes exceeds the limit of {1} bytes",
                   bytes.size(), maxBytes);
  static std::atomic<uint64_t> counter{0};
  std::string temporary = pathOf(
      llvm::formatv("{0}{1}-{2}-{3}", kTemporaryPrefix, uint64_t(getpid()),
                    counter++, uint64_t(time(nullptr))));
  std::string file = pathOf(name);
  struct stat status;
  uint64_t replaced = lstat(file.c_str(), &status) == 0 ? status.st_size : 0;
  if (llvm::Error error = writeTemporary(temporary, bytes, file)) {
    unlink(temporary.c_str());
    return error;
  }
  bool over;
  {
    std::lock_guard<std::mutex> lock(mutex);
    totalBytes -= std::min(totalBytes, replaced);
    totalBytes += bytes.size();
    over = maxBytes && totalBytes > maxBytes;
  }
  // Counts again, because other processes may have added and removed files.
  if (over)
    scan();
  return llvm::Error::success();
}

void CacheDirectory::scan() {
  struct Entry {
    timespec used;
    uint64_t bytes;
    std::string file;
  };
  std::vector<Entry> entries;
  uint64_t total = 0;
  if (DIR *stream = opendir(path.c_str())) {
    while (const dirent *item = readdir(stream)) {
      llvm::StringRef name(item->d_name);
      std::string file = pathOf(name.str());
      struct stat status;
      if (lstat(file.c_str(), &status) != 0 || !S_ISREG(status.st_mode))
        continue;
      if (name.starts_with(kTemporaryPrefix)) {
        if (removeAbandoned(file))
          continue;
      } else if (name.ends_with(kSuffix)) {
        entries.push_back({status.st_mtim, uint64_t(status.st_size), file});
      } else {
        continue;
      }
      total += status.st_size;
    }
    closedir(stream);
  }

  uint64_t removed = 0;
  if (maxBytes && total > maxBytes) {
    std::sort(entries.begin(), entries.end(),
              [](const Entry &a, const Entry &b) {
                return std::tie(a.used.tv_sec, a.used.tv_nsec) <
                       std::tie(b.used.tv_sec, b.used.tv_nsec);
              });
    // Removes slightly more than needed, so that not every store scans the
    // directory.
    uint64_t goal = maxBytes - maxBytes / 10;
    for (const Entry &entry : entries) {
      if (total <= goal)
        break;
      if (unlink(entry.file.c_str()) == 0)
        ++removed;
      total -= entry.bytes;
    }
  }
  std::lock_guard<std::mutex> lock(mutex);
  totalBytes = total;
  evictions += removed;
}

uint64_t CacheDirectory::bytes() const {
  std::lock_guard<std::mutex> lock(mutex);
  return totalBytes;
}

uint64_t CacheDirectory::numEvictions() const {
  std::lock_guard<std::mutex> lock(mutex);
  return evictions;
}
