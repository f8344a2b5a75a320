//===- CacheDirectory.cpp - The cache's files -----------------------------===//

#include "CacheDirectory.h"

#include "Diagnostics.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <ctime>
#include <dirent.h>
#include <fcntl.h>
#include <filesystem>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>
#include <vector>

using namespace torch_ltc::runtime;

namespace {

constexpr char kSuffix[] = ".ltc";
constexpr char kTemporaryPrefix[] = "tmp-";
constexpr time_t kTemporarySeconds = 3600;

std::string systemMessage(int code) {
  return std::generic_category().message(code);
}

/// A file descriptor that closes itself.
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

/// Entries are machine code, so nobody else may write them.
llvm::Error checkOwner(const std::string &path) {
  struct stat status;
  if (stat(path.c_str(), &status) != 0)
    return failure("{0}", systemMessage(errno));
  if (!S_ISDIR(status.st_mode))
    return failure("it is no directory");
  if (status.st_uid != geteuid() && status.st_uid != 0)
    return failure("it belongs to another user, who could put code in it");
  if (status.st_mode & S_IWOTH)
    return failure("every user may write it, and so could put code in it "
                   "(chmod o-w helps)");
  return llvm::Error::success();
}

} // namespace

llvm::Expected<std::unique_ptr<CacheDirectory>>
CacheDirectory::open(const std::string &path, uint64_t maxBytes) {
  std::error_code code;
  bool existed = std::filesystem::exists(path, code);
  if (!existed) {
    std::filesystem::create_directories(path, code);
    if (code)
      return failure("{0}", code.message());
    // Whatever the umask says.
    chmod(path.c_str(), 0700);
  }
  if (llvm::Error error = checkOwner(path))
    return error;
  std::unique_ptr<CacheDirectory> directory(new CacheDirectory(path, maxBytes));
  directory->scan();
  return directory;
}

std::optional<std::string> CacheDirectory::read(const std::string &name) {
  File file(::open(pathOf(name).c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  struct stat status;
  if (file.descriptor < 0 || fstat(file.descriptor, &status) != 0 ||
      !S_ISREG(status.st_mode))
    return std::nullopt;
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
  // Its modification time is its last use: many file systems don't keep access
  // times. In a read-only directory this fails, and nothing is removed either.
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

llvm::Error CacheDirectory::writeTemporary(const std::string &temporary,
                                           llvm::StringRef bytes) const {
  File file(::open(temporary.c_str(),
                   O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (file.descriptor < 0)
    return failure("{0}", systemMessage(errno));
  while (!bytes.empty()) {
    ssize_t count = ::write(file.descriptor, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR)
      continue;
    if (count < 0)
      return failure("{0}", systemMessage(errno));
    bytes = bytes.drop_front(count);
  }
  int descriptor = file.descriptor;
  file.descriptor = -1;
  // Some file systems report a full disk or quota only here.
  if (::close(descriptor) != 0)
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
  if (llvm::Error error = writeTemporary(temporary, bytes)) {
    unlink(temporary.c_str());
    return error;
  }
  std::string file = pathOf(name);
  struct stat status;
  uint64_t replaced = stat(file.c_str(), &status) == 0 ? status.st_size : 0;
  if (rename(temporary.c_str(), file.c_str()) != 0) {
    int code = errno;
    unlink(temporary.c_str());
    return failure("{0}", systemMessage(code));
  }
  bool over;
  {
    std::lock_guard<std::mutex> lock(mutex);
    totalBytes -= std::min(totalBytes, replaced);
    totalBytes += bytes.size();
    over = maxBytes && totalBytes > maxBytes;
  }
  // Other processes may have added and removed files: count afresh.
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
  time_t now = time(nullptr);
  if (DIR *stream = opendir(path.c_str())) {
    while (const dirent *item = readdir(stream)) {
      llvm::StringRef name(item->d_name);
      std::string file = pathOf(name.str());
      struct stat status;
      if (stat(file.c_str(), &status) != 0 || !S_ISREG(status.st_mode))
        continue;
      if (name.starts_with(kTemporaryPrefix) &&
          now - status.st_mtime > kTemporarySeconds)
        unlink(file.c_str());
      else if (name.ends_with(kSuffix)) {
        entries.push_back({status.st_mtim, uint64_t(status.st_size), file});
        total += status.st_size;
      }
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
    // A little more than asked for, so that not every store scans.
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
