//===- background_compiler.cpp - Compilation in the background ------------===//

#include "compilation/background_compiler.h"

#include "compilation/library_pages.h"
#include "memory/blocking.h"

#include <atomic>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <thread>

#include <pthread.h>
#include <sys/resource.h>

using namespace torch_ltc;

namespace {

/// With this niceness, the thread gets a third of the time that a thread of
/// normal priority gets on a busy processor.
constexpr int kNiceness = 5;

class BackgroundCompiler {
public:
  void push(std::function<void()> job) {
    std::lock_guard<std::mutex> lock(mutex);
    if (isEnding)
      return;
    jobs.push_back(std::move(job));
    if (!worker.joinable())
      worker = std::thread([this] { work(); });
    changed.notify_all();
  }

  void drain() {
    BlockingScope blocking; // jobs may log, which takes the GIL
    std::unique_lock<std::mutex> lock(mutex);
    waitOrInterrupt(changed, lock, [&] { return jobs.empty() && !isBusy; });
  }

  bool isActive() {
    std::lock_guard<std::mutex> lock(mutex);
    return isBusy || !jobs.empty();
  }

  void shutDown() {
    {
      std::lock_guard<std::mutex> lock(mutex);
      isEnding = true;
      jobs.clear();
      changed.notify_all();
    }
    if (worker.joinable())
      worker.join();
  }

private:
  void work() {
    // On Linux, this applies to this thread and to those that LLVM starts from
    // it.
    setpriority(PRIO_PROCESS, 0, getpriority(PRIO_PROCESS, 0) + kNiceness);
    std::optional<LibraryPagesLimit> limit; // while there are jobs
    std::unique_lock<std::mutex> lock(mutex);
    for (;;) {
      changed.wait(lock, [&] { return isEnding || !jobs.empty(); });
      if (jobs.empty())
        return;
      std::function<void()> job = std::move(jobs.front());
      jobs.pop_front();
      isBusy = true;
      lock.unlock();
      if (!limit)
        limit.emplace();
      job();
      job = nullptr; // releases what the job holds before waiters are notified
      lock.lock();
      if (jobs.empty() && !isEnding) {
        lock.unlock();
        limit.reset();
        releaseCompilerMemory();
        lock.lock();
      }
      isBusy = false;
      changed.notify_all();
    }
  }

  std::mutex mutex;
  std::condition_variable changed;
  std::deque<std::function<void()>> jobs;
  bool isBusy = false;
  bool isEnding = false;
  std::thread worker;
};

/// Never destroyed, because other threads may use it until the process ends. A
/// forked process doesn't have the thread, and creates its own compiler.
std::atomic<BackgroundCompiler *> instance{nullptr};

BackgroundCompiler &backgroundCompiler() {
  static bool created = [] {
    instance = new BackgroundCompiler;
    pthread_atfork(nullptr, nullptr, [] { instance = new BackgroundCompiler; });
    return true;
  }();
  (void)created;
  return *instance;
}

} // namespace

void torch_ltc::compileInBackground(std::function<void()> job) {
  backgroundCompiler().push(std::move(job));
}

bool torch_ltc::isCompilingInBackground() {
  BackgroundCompiler *compiler = instance;
  return compiler && compiler->isActive();
}

void torch_ltc::waitForBackgroundCompilations() {
  backgroundCompiler().drain();
}

void torch_ltc::shutDownBackgroundCompiler() {
  backgroundCompiler().shutDown();
}
