//===- CacheTest.cpp - Programs and kernels in memory and on disk ---------===//

#include "CacheFixture.h"

#include <chrono>
#include <csignal>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <thread>

using namespace torch_ltc::runtime;

//===----------------------------------------------------------------------===//
// Hits and misses
//===----------------------------------------------------------------------===//

TEST_F(CacheTest, MemoryOnly) {
  TestCache cache("");
  EXPECT_EQ(cache.lookup("key"), "<miss>");
  std::string value("a\0b", 3);
  cache.store("key", value);
  EXPECT_EQ(cache.lookup("key"), value);
  EXPECT_EQ(cache.lookup("key", LTC_CACHE_PROGRAM), "<miss>");
  LtcCacheStatistics counts = cache.statistics();
  EXPECT_EQ(counts.memory_hits, 1u);
  EXPECT_EQ(counts.misses, 2u);
  EXPECT_EQ(counts.stores, 1u);
  EXPECT_EQ(counts.disk_bytes, 0u);

  LtcCache plain;
  ASSERT_EQ(ltcCacheCreate(nullptr, &plain), nullptr);
  ltcCacheDestroy(plain);
}

TEST_F(CacheTest, DiskServesTheNextProcess) {
  std::string key("k\0ey", 4);
  {
    TestCache cache(directory);
    cache.store(key, "kernel");
    cache.store(key, "program", LTC_CACHE_PROGRAM);
    cache.store("empty", "");
  }
  TestCache cache(directory);
  EXPECT_EQ(cache.lookup(key), "kernel");
  EXPECT_EQ(cache.lookup(key, LTC_CACHE_PROGRAM), "program");
  EXPECT_EQ(cache.lookup("empty"), "");
  EXPECT_EQ(cache.lookup(key), "kernel");
  LtcCacheStatistics counts = cache.statistics();
  EXPECT_EQ(counts.disk_hits, 3u);
  EXPECT_EQ(counts.memory_hits, 1u);
  EXPECT_GT(counts.disk_bytes, 0u);
  EXPECT_TRUE(cache.warnings.empty());
}

TEST_F(CacheTest, StoreReplaces) {
  TestCache cache(directory);
  cache.store("key", std::string(1000, 'a'));
  uint64_t bytes = cache.statistics().disk_bytes;
  cache.store("key", std::string(1000, 'b'));
  EXPECT_EQ(cache.statistics().disk_bytes, bytes);
  EXPECT_EQ(cache.lookup("key"), std::string(1000, 'b'));
  EXPECT_EQ(TestCache(directory).lookup("key"), std::string(1000, 'b'));
}

TEST_F(CacheTest, CreatesItsDirectory) {
  std::string nested = directory + "/a/b";
  TestCache cache(nested);
  cache.store("key", "value");
  EXPECT_EQ(TestCache(nested).lookup("key"), "value");
  struct stat status;
  ASSERT_EQ(stat(nested.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0700u);
}

TEST_F(CacheTest, TargetIsPartOfTheKey) {
  TestCache cache(directory);
  cache.store("key", "host");
  std::string features = ltcTargetCpuFeatures();
  std::string name = ltcTargetCpuName(), salt = ltcCacheSalt();
  ltcSetTargetCpu("x86-64", "");
  EXPECT_EQ(cache.lookup("key"), "<miss>");
  cache.store("key", "baseline");
  ltcSetTargetCpu("native", "");
  EXPECT_EQ(name, ltcTargetCpuName());
  EXPECT_EQ(features, ltcTargetCpuFeatures());
  EXPECT_EQ(salt, ltcCacheSalt());
  EXPECT_EQ(cache.lookup("key"), "host");
  EXPECT_EQ(numFiles(), 2u);
}

//===----------------------------------------------------------------------===//
// Bad entries
//===----------------------------------------------------------------------===//

TEST_F(CacheTest, BuildsOfLibrariesArePartOfTheKey) {
  std::string library = directory + "/library.so";
  auto lookup = [&] { return TestCache(directory, 0, library).lookup("key"); };
  writeFile(library, "not ELF: its content counts");
  TestCache(directory, 0, library).store("key", "first build");
  EXPECT_EQ(lookup(), "first build");
  writeFile(library, "not ELF: its Content counts");
  EXPECT_EQ(lookup(), "<miss>");
  EXPECT_EQ(TestCache(directory).lookup("key"), "<miss>");
  fs::remove(library);
  EXPECT_EQ(lookup(), "<miss>");

  // If the library has a build id from the linker, only the id counts, so that
  // stripping debug information doesn't invalidate all programs.
  std::string program = readFile("/proc/self/exe");
  writeFile(library, program);
  TestCache(directory, 0, library).store("key", "second build");
  writeFile(library, program + "appended");
  EXPECT_EQ(lookup(), "second build");
}

TEST_F(CacheTest, BadEntriesAreIgnoredAndRemoved) {
  std::string good =
      encodeCacheEntry(LTC_CACHE_KERNEL, ltcCacheSalt(), "key", "value");
  expectRejected("", "truncated");
  expectRejected(good.substr(0, 20), "truncated");
  expectRejected(good.substr(0, good.size() - 1), "truncated");
  expectRejected(good + "x", "truncated");
  std::string changed = good;
  changed.back() ^= 1;
  expectRejected(changed, "corrupt");
  changed = good;
  changed[0] = 'X';
  expectRejected(changed, "isn't a cache entry");
  changed = good;
  changed[8] ^= 1;
  expectRejected(changed, "another version");
  expectRejected(encodeCacheEntry(LTC_CACHE_KERNEL, "torch_ltc of yesterday",
                                  "key", "value"),
                 "another version");
  expectRejected(
      encodeCacheEntry(LTC_CACHE_KERNEL, ltcCacheSalt(), "other", "value"),
      "another key");
  expectRejected(
      encodeCacheEntry(LTC_CACHE_PROGRAM, ltcCacheSalt(), "key", "value"),
      "another key");
  // A key size of 2^64 - 1.
  changed = good;
  for (size_t i = 24; i < 32; ++i)
    changed[i] = char(0xff);
  expectRejected(changed, "truncated");
}

TEST_F(CacheTest, OneWarningForManyBadEntries) {
  TestCache cache(directory);
  for (std::string key : {"a", "b", "c"})
    writeFile(fileOf(key), "rubbish");
  for (std::string key : {"a", "b", "c"})
    EXPECT_EQ(cache.lookup(key), "<miss>");
  EXPECT_EQ(cache.warnings.size(), 1u);
  EXPECT_EQ(cache.statistics().rejected, 3u);
}

//===----------------------------------------------------------------------===//
// Size limit
//===----------------------------------------------------------------------===//

static void pauseForTimestamps() {
  // Wait for the next tick of the kernel, at which file times advance.
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
}

TEST_F(CacheTest, EvictsTheLeastRecentlyUsed) {
  std::string value(1000, 'v');
  {
    TestCache cache(directory);
    for (std::string key : {"a", "b", "c"}) {
      cache.store(key, value);
      pauseForTimestamps();
    }
  }
  {
    TestCache cache(directory);
    EXPECT_EQ(cache.lookup("a"), value); // now the most recently used
    pauseForTimestamps();
  }
  TestCache cache(directory, 3500);
  EXPECT_EQ(cache.statistics().evictions, 0u);
  cache.store("d", value);
  LtcCacheStatistics counts = cache.statistics();
  EXPECT_EQ(counts.evictions, 1u);
  EXPECT_LE(counts.disk_bytes, 3500u);
  EXPECT_FALSE(fs::exists(fileOf("b")));
  EXPECT_TRUE(fs::exists(fileOf("a")));
  EXPECT_TRUE(fs::exists(fileOf("c")));
  EXPECT_TRUE(fs::exists(fileOf("d")));
}

TEST_F(CacheTest, ScansWhenOpened) {
  {
    TestCache cache(directory);
    for (int i = 0; i < 10; ++i)
      cache.store("key" + std::to_string(i), std::string(1000, 'v'));
  }
  writeFile(directory + "/tmp-1-0-0", "left by a crash");
  writeFile(directory + "/README", "not ours");
  TestCache cache(directory, 5000);
  EXPECT_LE(cache.statistics().disk_bytes, 5000u);
  EXPECT_GE(cache.statistics().evictions, 5u);
  EXPECT_FALSE(fs::exists(directory + "/tmp-1-0-0"));
  EXPECT_TRUE(fs::exists(directory + "/README"));
}

TEST_F(CacheTest, EntriesBeyondTheLimitStayInMemory) {
  TestCache cache(directory, 1000);
  std::string value(5000, 'v');
  cache.store("key", value);
  EXPECT_EQ(cache.lookup("key"), value);
  EXPECT_EQ(numFiles(), 0u);
  ASSERT_EQ(cache.warnings.size(), 1u);
  EXPECT_NE(cache.warnings[0].find("limit"), std::string::npos);
}

TEST_F(CacheTest, MemoryHasTheLimitToo) {
  TestCache cache("", 10000);
  for (int i = 0; i < 20; ++i)
    cache.store("key" + std::to_string(i), std::string(1000, 'v'));
  EXPECT_EQ(cache.lookup("key0"), "<miss>");
  EXPECT_EQ(cache.lookup("key19"), std::string(1000, 'v'));
  EXPECT_GT(cache.statistics().evictions, 10u);
}

//===----------------------------------------------------------------------===//
// Several processes and threads
//===----------------------------------------------------------------------===//

TEST_F(CacheTest, ProcessesStoreTheSameKey) {
  auto valueOf = [](int round) {
    return std::string(20000 + round, char('a' + round % 26));
  };
  std::vector<pid_t> children;
  for (int child = 0; child < 2; ++child) {
    pid_t pid = fork();
    ASSERT_GE(pid, 0);
    if (pid == 0) {
      int wrong = 0;
      for (int round = 0; round < 200; ++round) {
        // Each access uses a new cache object, because an entry in memory would
        // hide the file.
        TestCache cache(directory);
        cache.store("key", valueOf(round));
        std::string seen = TestCache(directory).lookup("key");
        wrong += seen == "<miss>" || seen != valueOf(seen.size() - 20000);
        wrong += !cache.warnings.empty();
      }
      _exit(wrong ? 1 : 0);
    }
    children.push_back(pid);
  }
  for (pid_t pid : children) {
    int status = 0;
    ASSERT_EQ(waitpid(pid, &status, 0), pid);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  }
  EXPECT_EQ(numFiles(), 1u); // and no temporary files
}

TEST_F(CacheTest, ThreadsShareACache) {
  TestCache cache(directory, 200000);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 100; ++i) {
        std::string key = std::to_string((t + i) % 20);
        std::string seen = cache.lookup(key);
        if (seen != "<miss>") {
          EXPECT_EQ(seen, std::string(1000, key[0]));
        }
        cache.store(key, std::string(1000, key[0]));
      }
    });
  for (std::thread &thread : threads)
    thread.join();
  LtcCacheStatistics counts = cache.statistics();
  EXPECT_EQ(counts.memory_hits + counts.disk_hits + counts.misses, 400u);
  EXPECT_EQ(counts.stores, 400u);
  EXPECT_TRUE(cache.warnings.empty());
}

//===----------------------------------------------------------------------===//
// Unusable directories
//===----------------------------------------------------------------------===//

TEST_F(CacheTest, UnwritableDirectory) {
  {
    TestCache cache(directory);
    cache.store("old", "value");
  }
  ASSERT_EQ(chmod(directory.c_str(), 0500), 0);
  // Test in an unprivileged child, because root can write everywhere.
  pid_t pid = fork();
  ASSERT_GE(pid, 0);
  if (pid == 0) {
    if (geteuid() == 0) {
      if (chown(directory.c_str(), 65534, 65534) != 0 || setuid(65534) != 0)
        _exit(2);
    }
    TestCache cache(directory);
    expectMemoryServes(cache, "can't write");
    _exit(testing::Test::HasFailure() ? 1 : 0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(pid, &status, 0), pid);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  chmod(directory.c_str(), 0700);
}

TEST_F(CacheTest, FullDisk) {
  // A file size limit stops the write halfway, like a full disk.
  pid_t pid = fork();
  ASSERT_GE(pid, 0);
  if (pid == 0) {
    signal(SIGXFSZ, SIG_IGN);
    struct rlimit limit = {1000, 1000};
    setrlimit(RLIMIT_FSIZE, &limit);
    TestCache cache(directory);
    std::string value(5000, 'v');
    cache.store("key", value);
    cache.store("key2", value);
    EXPECT_EQ(cache.lookup("key"), value);
    EXPECT_EQ(cache.warnings.size(), 1u);
    EXPECT_EQ(numFiles(), 0u);
    _exit(testing::Test::HasFailure() ? 1 : 0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(pid, &status, 0), pid);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

TEST_F(CacheTest, FullFileSystem) {
  if (mount("tmpfs", directory.c_str(), "tmpfs", 0, "size=64k,mode=0700") != 0)
    GTEST_SKIP() << "mounting a small file system needs root; FullDisk covers "
                    "the same path";
  {
    TestCache cache(directory);
    std::string value(40000, 'v');
    cache.store("key", value);
    cache.store("key2", value);
    cache.store("key3", value);
    EXPECT_EQ(cache.lookup("key2"), value);
    ASSERT_EQ(cache.warnings.size(), 1u);
    EXPECT_NE(cache.warnings[0].find("No space left"), std::string::npos);
    EXPECT_EQ(numFiles(), 1u);
  }
  EXPECT_EQ(TestCache(directory).lookup("key"), std::string(40000, 'v'));
  umount(directory.c_str());
}
