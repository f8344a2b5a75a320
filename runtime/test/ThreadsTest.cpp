//===- ThreadsTest.cpp - Threads that wait for the caller -----------------===//

#include "torch_ltc-c/runtime.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <iterator>
#include <omp.h>

namespace {

size_t numThreads() {
  std::filesystem::directory_iterator tasks("/proc/self/task");
  return size_t(std::distance(begin(tasks), end(tasks)));
}

/// Leaves a team of this size waiting for the calling thread.
int useThreads(int count) {
  int sum = 0;
#pragma omp parallel num_threads(count) reduction(+ : sum)
  sum += 1;
  return sum;
}

TEST(ThreadsTest, TooManyForTheProcessorsAreReleased) {
  int processors = omp_get_num_procs();
  if (processors < 2)
    GTEST_SKIP() << "one processor";
  size_t before = numThreads();
  ASSERT_EQ(useThreads(processors), processors);
  ASSERT_EQ(numThreads(), before + size_t(processors) - 1);
  ltcReleaseCallerThreads(1); // executables run on one: nobody is in the way
  EXPECT_EQ(numThreads(), before + size_t(processors) - 1);
  ltcReleaseCallerThreads(processors);
  EXPECT_EQ(numThreads(), before);
  EXPECT_EQ(useThreads(processors), processors);
}

} // namespace
