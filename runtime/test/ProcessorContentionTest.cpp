//===- ProcessorContentionTest.cpp - Contention with other processes ------===//

#include "ProcessorContention.h"

#include "gtest/gtest.h"

#include <chrono>
#include <csignal>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

using namespace torch_ltc::runtime;

namespace {

/// Adds samples of 250 ms to an estimate. In each of them, other processes use
/// `others` processors and this process uses `numThreads` processors.
class Machine {
public:
  explicit Machine(ContentionEstimate &estimate) : estimate(estimate) {}

  bool run(double others, int numThreads, int numSamples = 4) {
    bool result = false;
    for (int i = 0; i < numSamples; ++i) {
      now.wall += 0.25;
      now.own += 0.25 * numThreads;
      now.all += 0.25 * (numThreads + others);
      result = estimate.add(now, numThreads);
    }
    return result;
  }

private:
  ContentionEstimate &estimate;
  LtcProcessorTimes now = {};
};

TEST(ProcessorContentionTest, OthersOnTheTeamsProcessors) {
  ContentionEstimate estimate(2);
  Machine machine(estimate);
  EXPECT_FALSE(machine.run(0, 2));
  EXPECT_FALSE(machine.run(0.1, 2)) << "a service in the background";
  EXPECT_TRUE(machine.run(0.6, 2, 1)) << "at the first sample that sees it";
}

TEST(ProcessorContentionTest, EndsOnlyAfterQuietSamples) {
  ContentionEstimate estimate(2);
  Machine machine(estimate);
  machine.run(1, 2);
  EXPECT_TRUE(machine.run(0, 2, 3));
  EXPECT_TRUE(machine.run(1, 2, 1)) << "counts anew";
  EXPECT_TRUE(machine.run(0, 2, 3));
  EXPECT_FALSE(machine.run(0, 2, 1));
}

TEST(ProcessorContentionTest, ProcessorsThatTheTeamLeavesAreForOthers) {
  ContentionEstimate estimate(8);
  Machine machine(estimate);
  EXPECT_FALSE(machine.run(4, 4));
  EXPECT_TRUE(machine.run(5, 4));
}

TEST(ProcessorContentionTest, SeesAnotherProcess) {
  std::optional<LtcProcessorTimes> before = readProcessorTimes();
  if (!before)
    GTEST_SKIP() << "no /proc/stat";
  pid_t child = fork();
  if (child == 0)
    while (true) {
    }
  std::this_thread::sleep_for(std::chrono::milliseconds(600));
  std::optional<LtcProcessorTimes> after = readProcessorTimes();
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  ASSERT_TRUE(after);
  double all = after->all - before->all, own = after->own - before->own;
  // A busy machine gives the child less than one processor.
  EXPECT_GT(all - own, 0.2);
  EXPECT_LT(own, 0.1) << "a child's time isn't this process's";
}

} // namespace
