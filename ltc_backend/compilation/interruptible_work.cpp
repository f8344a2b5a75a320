//===- interruptible_work.cpp - Long work that Ctrl-C can interrupt -------===//

#include "compilation/interruptible_work.h"

#include "memory/blocking.h"

#include <memory>
#include <thread>
#include <unistd.h>

using namespace torch_ltc;

namespace {

struct Progress {
  std::mutex mutex;
  std::condition_variable changed;
  int numRunning = 0;
};

/// Never destroyed: interrupted work may end after static destructors have run.
Progress &progress() {
  static auto *instance = new Progress;
  return *instance;
}

} // namespace

void torch_ltc::runInterruptibly(std::function<void()> work) {
  if (gettid() != getpid())
    return work();
  auto isDone = std::make_shared<bool>(false);
  BlockingScope blocking;
  std::unique_lock<std::mutex> lock(progress().mutex);
  ++progress().numRunning;
  std::thread([isDone, work = std::move(work)]() mutable {
    work();
    work = nullptr; // releases what it owns, before the caller continues
    std::lock_guard<std::mutex> lock(progress().mutex);
    *isDone = true;
    --progress().numRunning;
    progress().changed.notify_all();
  }).detach();
  waitOrInterrupt(progress().changed, lock, [&] { return *isDone; });
}

void torch_ltc::waitForInterruptedWork() {
  BlockingScope blocking;
  std::unique_lock<std::mutex> lock(progress().mutex);
  progress().changed.wait(lock, [] { return progress().numRunning == 0; });
}
