//===- ThreadsTest.cpp - The caller's threads and processor ---------------===//

#include "OpenMp.h"
#include "TracingThreadLoad.h"
#include "torch_ltc-c/runtime.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <iterator>
#include <pthread.h>
#include <thread>

namespace {

size_t numThreads() {
  std::filesystem::directory_iterator tasks("/proc/self/task");
  return size_t(std::distance(begin(tasks), end(tasks)));
}

/// Runs a team of `count` threads, which then wait for more work from the
/// calling thread. Returns the number of threads that ran.
int useThreads(int count) {
  std::atomic<int> sum = 0;
  torch_ltc::runtime::runTeam(count, [&] { ++sum; });
  return sum;
}

TEST(ThreadsTest, TooManyForTheProcessorsAreReleased) {
  int processors = omp_get_num_procs();
  if (processors < 2)
    GTEST_SKIP() << "one processor";
  size_t before = numThreads();
  ASSERT_EQ(useThreads(processors), processors);
  ASSERT_EQ(numThreads(), before + size_t(processors) - 1);
  ltcPrepareThreads(1); // a step on one thread needs no more processors
  EXPECT_EQ(numThreads(), before + size_t(processors) - 1);
  ltcPrepareThreads(processors);
  // Wait, because a joined thread stays listed until the kernel removes it.
  for (int i = 0; i < 200 && numThreads() != before; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_EQ(numThreads(), before);
  EXPECT_EQ(useThreads(processors), processors);
}

/// A thread that computes until the test makes it wait.
class Caller {
public:
  Caller() : thread([this] { work(); }) {
    pthread_getcpuclockid(thread.native_handle(), &clock);
  }
  ~Caller() {
    isWorking = false;
    isEnding = true;
    thread.join();
  }
  clockid_t clock;
  std::atomic<bool> isWorking{true};

private:
  void work() {
    while (!isEnding)
      if (!isWorking)
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  std::atomic<bool> isEnding{false};
  std::thread thread;
};

/// Whether the number of threads for short commands becomes `wanted`. Waits up
/// to two seconds, because other processes may delay a thread.
bool becomes(torch_ltc::runtime::TracingThreadLoad &load, const Caller &caller,
             int processors, int wanted) {
  for (int i = 0; i < 200; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    if (load.numThreadsForShortCommands(&caller.clock, processors) == wanted)
      return true;
  }
  return false;
}

TEST(ThreadsTest, ACallerThatComputesIsLeftAProcessor) {
  int processors = omp_get_num_procs();
  if (processors < 2)
    GTEST_SKIP() << "one processor";
  Caller caller;
  torch_ltc::runtime::TracingThreadLoad load;
  EXPECT_EQ(load.numThreadsForShortCommands(&caller.clock, processors),
            processors); // nothing is known yet
  EXPECT_TRUE(becomes(load, caller, processors, processors - 1));
  caller.isWorking = false;
  EXPECT_TRUE(becomes(load, caller, processors, processors));
  caller.isWorking = true;
  EXPECT_TRUE(becomes(load, caller, processors, processors - 1));
  // The team isn't reduced if the caller waits for the run or there are enough
  // processors.
  EXPECT_EQ(load.numThreadsForShortCommands(nullptr, processors), processors);
  EXPECT_EQ(load.numThreadsForShortCommands(&caller.clock, 1), 1);
}

} // namespace
