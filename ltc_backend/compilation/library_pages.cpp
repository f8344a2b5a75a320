//===- library_pages.cpp - Memory of libraries that are idle --------------===//

#include "compilation/library_pages.h"

#include "compilation/background_compiler.h"
#include "compilation/compiler_library.h"
#include "events/metrics.h"
#include "memory/buffer.h"
#include "programs/shared_library.h"

#include <malloc.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>

using namespace torch_ltc;

namespace {

/// Number of steps without a new program after which the libraries count as
/// idle. A loop compiles in its first two or three steps.
constexpr int kStepsUntilIdle = 2;

std::atomic<int> stepsLeft{0};

using Clock = std::chrono::steady_clock;

/// A release is followed by a pause of this multiple of its cost, so that a
/// loop with a new program every few steps spends at most a hundredth of its
/// time on releasing pages and reading them again.
constexpr int kTimesCost = 100;
constexpr std::chrono::milliseconds kCostOfReading{15};

/// The libraries' pages that may be resident while the background compiler
/// works: a share of the process's memory, or at least this many bytes. With 20
/// MB a compilation takes a quarter longer than with 40 MB.
constexpr int64_t kLeastLimit = 20 << 20;
constexpr int64_t kShareOfProcess = 20;
constexpr std::chrono::milliseconds kIntervalWhileCompiling{2};

/// The earliest time of the next release.
std::atomic<Clock::rep> nextTime{0};

} // namespace

void torch_ltc::noteCompilerUse() { stepsLeft = kStepsUntilIdle; }

void torch_ltc::releaseCompilerMemory() {
  if (isCompilerLoaded()) {
    const CompilerLibrary &library = compilerLibrary();
    library.ltcCompilerReleaseMemory(library.compiler);
  }
  releaseLibraryPages();
  // Returns memory that the compiler has freed, even between live allocations,
  // to the system.
  malloc_trim(0);
}

void torch_ltc::releaseIdleLibraryPages() {
  if (stepsLeft.load(std::memory_order_relaxed) <= 0)
    return;
  if (isCompilingInBackground())
    return;
  if (stepsLeft.fetch_sub(1) != 1)
    return;
  const Clock::time_point begin = Clock::now();
  if (begin.time_since_epoch().count() < nextTime.load()) {
    stepsLeft = 1; // tries again after the next step
    return;
  }
  // Releases the buffers that the first steps of a loop leave in the cache, up
  // to one for each parameter: these steps can't donate buffers that the loop's
  // set-up still holds.
  memoryPool().release();
  releaseCompilerMemory();
  count(Counter::idle_releases);
  const Clock::time_point end = Clock::now();
  const Clock::duration cost =
      end - begin + (isCompilerLoaded() ? kCostOfReading : Clock::duration());
  nextTime = (end + kTimesCost * cost).time_since_epoch().count();
}

LibraryPagesLimit::LibraryPagesLimit() : pageSize(sysconf(_SC_PAGESIZE)) {
  file.reset(std::fopen("/proc/self/statm", "r"));
  if (!file) // without /proc, pages are only released after the compilation
    return;
  std::setvbuf(file.get(), nullptr, _IONBF, 0);
  watcher = std::thread([this] { watch(); });
}

LibraryPagesLimit::~LibraryPagesLimit() {
  {
    std::scoped_lock lock(mutex);
    isEnding = true;
  }
  changed.notify_all();
  if (watcher.joinable())
    watcher.join();
}

LibraryPagesLimit::Resident LibraryPagesLimit::resident() {
  long size = 0, all = 0, ofFiles = 0;
  std::rewind(file.get());
  if (std::fscanf(file.get(), "%ld %ld %ld", &size, &all, &ofFiles) != 3)
    return {};
  return {.all = all * pageSize, .ofFiles = ofFiles * pageSize};
}

void LibraryPagesLimit::watch() {
  int64_t least = resident().ofFiles;
  std::unique_lock<std::mutex> lock(mutex);
  while (!changed.wait_for(lock, kIntervalWhileCompiling,
                           [&] { return isEnding; })) {
    const Resident now = resident();
    least = std::min(least, now.ofFiles);
    if (now.ofFiles - least < std::max(kLeastLimit, now.all / kShareOfProcess))
      continue;
    releaseLibraryPages();
    // Not the bytes that are left now: the compiler has already read some pages
    // again, and the limit would grow with each release.
    least = std::min(least, resident().ofFiles);
  }
}
