//===- compilation_lock.cpp - One compilation for all processes -----------===//

#include "compilation/compilation_lock.h"

#include "compilation/compiler_library.h"
#include "compilation/disk_cache.h"
#include "memory/blocking.h"

#include <chrono>
#include <fcntl.h>
#include <stdexcept>
#include <sys/file.h>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>

using namespace torch_ltc;
using std::chrono::steady_clock;

namespace {

constexpr std::chrono::minutes kMaxWait{5};
constexpr std::chrono::milliseconds kBetweenTries{10};

} // namespace

CompilationLock::CompilationLock(const std::string &name) {
  CacheDescription cache = describeCache(/*open=*/true);
  if (cache.directory.empty() || !cache.problem.empty())
    return;
  // The cache removes files with this prefix that no process has locked: those
  // that killed processes left.
  path = cache.directory + "/tmp-compiling-" + name;
  openFile();
  auto end = steady_clock::now() + kMaxWait;
  while (descriptor >= 0 && !tryLock() && steady_clock::now() < end) {
    if (areCompilationsCancelled())
      throw std::runtime_error("the process ends");
    if (gettid() == getpid()) {
      BlockingScope blocking;
      checkSignals();
    }
    std::this_thread::sleep_for(kBetweenTries);
  }
}

void CompilationLock::openFile() {
  if (descriptor >= 0)
    close(descriptor);
  descriptor =
      open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
}

bool CompilationLock::tryLock() {
  // The file may have been removed since it was opened, by the process that had
  // the lock, or by a process that found it before it was locked. A lock on a
  // removed file excludes nobody: other processes lock a new file of this name.
  for (;;) {
    struct stat status;
    if (flock(descriptor, LOCK_EX | LOCK_NB) != 0)
      return false;
    if (fstat(descriptor, &status) != 0 || status.st_nlink != 0)
      return true;
    openFile();
    if (descriptor < 0)
      return false;
  }
}

CompilationLock::~CompilationLock() {
  if (descriptor < 0)
    return;
  unlink(path.c_str());
  // Unlocks the file first: closing it isn't sufficient if a forked process
  // shares the open file.
  flock(descriptor, LOCK_UN);
  close(descriptor);
}
