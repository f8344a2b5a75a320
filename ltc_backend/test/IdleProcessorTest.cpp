//===- IdleProcessorTest.cpp - Whether a processor is idle ----------------===//

#include "compilation/idle_processor.h"

#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <sys/wait.h>
#include <thread>
#include <vector>

using namespace torch_ltc;

namespace {

/// Whether one of two processors was left idle in half a second in which all
/// processes together used `all` seconds of processor time.
bool isIdleAfter(double all) {
  LtcProcessorTimes before{10, 40, 3, 2}, after{10.5, 40 + all, 3.4, 2};
  return leftProcessorIdle(before, after);
}

} // namespace

TEST(IdleProcessor, OneOfTwo) {
  EXPECT_TRUE(isIdleAfter(0));
  EXPECT_TRUE(isIdleAfter(0.5));
  EXPECT_TRUE(isIdleAfter(0.6));
  EXPECT_FALSE(isIdleAfter(0.8));
  EXPECT_FALSE(isIdleAfter(1));
}

TEST(IdleProcessor, OtherProcessesCount) {
  LtcProcessorTimes now;
  if (!ltcReadProcessorTimes(&now))
    GTEST_SKIP() << "no /proc/stat";
  std::vector<pid_t> children;
  for (int i = 0; i < now.processors; ++i) {
    pid_t child = fork();
    if (child == 0)
      while (true) {
      }
    children.push_back(child);
  }
  bool isIdle = hasIdleProcessor();
  EXPECT_FALSE(isIdle) << "nothing is known at first";
  EXPECT_FALSE(hasProcessorsFor(1));
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  isIdle = hasIdleProcessor();
  for (pid_t child : children) {
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
  }
  EXPECT_FALSE(isIdle);
  EXPECT_FALSE(hasProcessorsFor(now.processors));
}
