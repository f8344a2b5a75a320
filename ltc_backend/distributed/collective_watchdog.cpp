//===- collective_watchdog.cpp - Collectives in a trace that pauses -------===//

#include "distributed/collective_watchdog.h"

#include "distributed/traced_collective.h"
#include "graph/live_tensors.h"

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

using namespace torch_ltc;

namespace {

/// This time is longer than the usual pauses of a thread that traces, which are
/// due to the system's scheduler, data loading, or Python's garbage collection.
constexpr std::chrono::milliseconds kPause{250};

class Watchdog {
public:
  void watch() {
    std::lock_guard<std::mutex> lock(mutex);
    if (isWatching || isEnding)
      return;
    isWatching = true;
    if (thread.joinable())
      changed.notify_all();
    else
      start();
  }

  void shutDown() {
    {
      std::lock_guard<std::mutex> lock(mutex);
      isEnding = true;
      changed.notify_all();
    }
    if (thread.joinable())
      thread.join();
  }

private:
  /// Called by the thread that traces the first collective.
  void start() {
    expectSecondScheduler();
    thread = std::thread([this] { work(); });
  }

  void work() {
    std::unique_lock<std::mutex> lock(mutex);
    for (;;) {
      changed.wait(lock, [&] { return isEnding || isWatching; });
      if (changed.wait_for(lock, kPause, [&] { return isEnding; }))
        return;
      // From here on, the next collective sets the flag again.
      isWatching = false;
      lock.unlock();
      bool arePending = runPausedCollectives(kPause);
      lock.lock();
      isWatching = isWatching || arePending;
    }
  }

  std::mutex mutex;
  std::condition_variable changed;
  bool isWatching = false; // whether collectives may be pending
  bool isEnding = false;
  std::thread thread;
};

/// Never destroyed, because other threads may use it until the process ends.
Watchdog &watchdog() {
  static auto *instance = new Watchdog;
  return *instance;
}

} // namespace

void torch_ltc::watchTracedCollectives() { watchdog().watch(); }

void torch_ltc::shutDownCollectiveWatchdog() { watchdog().shutDown(); }
