//===- MemoryPoolTest.cpp - What the pool caches --------------------------===//

#include "memory/memory_pool.h"

#include <gtest/gtest.h>

#include <vector>

using namespace torch_ltc;

namespace {

// The pool rounds no power of two up.
constexpr size_t kMebibyte = 1 << 20;

TEST(MemoryPoolTest, FreedMemoryIsAllocatedAgain) {
  MemoryPool pool;
  void *memory = pool.allocate(4 * kMebibyte);
  pool.free(memory, 4 * kMebibyte);
  EXPECT_EQ(pool.values().cached, 4 * int64_t(kMebibyte));
  EXPECT_EQ(pool.allocate(4 * kMebibyte), memory);
  EXPECT_EQ(pool.values().cached, 0);
  pool.free(memory, 4 * kMebibyte);
}

TEST(MemoryPoolTest, CachedSizesMakeRoomForAnotherSize) {
  MemoryPool pool;
  void *first = pool.allocate(256 * kMebibyte);
  pool.free(first, 256 * kMebibyte);
  EXPECT_EQ(pool.values().cached, 256 * int64_t(kMebibyte));
  std::vector<void *> others;
  for (int i = 0; i < 4; ++i) {
    others.push_back(pool.allocate(64 * kMebibyte));
    MemoryStatistics values = pool.values();
    EXPECT_LE(values.allocated + values.cached, 256 * int64_t(kMebibyte));
  }
  for (void *memory : others)
    pool.free(memory, 64 * kMebibyte);
}

TEST(MemoryPoolTest, MemoryOfAnEarlierPeakIsReturned) {
  MemoryPool pool;
  pool.free(pool.allocate(256 * kMebibyte), 256 * kMebibyte);
  // The first period has 2 runs, the second one 4.
  for (int i = 0; i < 5; ++i)
    pool.noteRun();
  EXPECT_EQ(pool.values().cached, 256 * int64_t(kMebibyte));
  pool.noteRun();
  EXPECT_EQ(pool.values().cached, 0);
}

} // namespace
