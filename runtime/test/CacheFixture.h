//===- CacheFixture.h - Caches in a temporary folder ----------------------===//

#ifndef TORCH_LTC_RUNTIME_TEST_CACHEFIXTURE_H
#define TORCH_LTC_RUNTIME_TEST_CACHEFIXTURE_H

#include "CacheEntry.h"
#include "torch_ltc-c/runtime.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <unistd.h>
#include <vector>

namespace torch_ltc::runtime {

namespace fs = std::filesystem;

inline void collect(const char *message, void *userData) {
  static_cast<std::vector<std::string> *>(userData)->push_back(message);
}

/// A cache that is used through the C API, with its warnings.
class TestCache {
public:
  explicit TestCache(const std::string &directory, uint64_t maxBytes = 0,
                     const std::string &library = "") {
    LtcCacheOptions options = {};
    options.directory = directory.c_str();
    options.max_bytes = maxBytes;
    options.warn = collect;
    options.user_data = &warnings;
    const char *libraries[] = {library.c_str()};
    options.libraries = libraries;
    options.num_libraries = library.empty() ? 0 : 1;
    EXPECT_EQ(ltcCacheCreate(&options, &cache), nullptr);
  }
  ~TestCache() { ltcCacheDestroy(cache); }

  void store(const std::string &key, const std::string &value,
             LtcCacheKind kind = LTC_CACHE_KERNEL) {
    EXPECT_EQ(ltcCacheStore(cache, kind, key.data(), key.size(), value.data(),
                            value.size()),
              nullptr);
  }

  /// The value of `key`, or "<miss>".
  std::string lookup(const std::string &key,
                     LtcCacheKind kind = LTC_CACHE_KERNEL) {
    LtcBytes value;
    int found = -1;
    EXPECT_EQ(
        ltcCacheLookup(cache, kind, key.data(), key.size(), &value, &found),
        nullptr);
    std::string result = found ? std::string(value.data, value.size) : "<miss>";
    ltcBytesDestroy(value);
    return result;
  }

  LtcCacheStatistics statistics() { return ltcCacheGetStatistics(cache); }

  std::vector<std::string> warnings;
  LtcCache cache;
};

class CacheTest : public testing::Test {
protected:
  void SetUp() override {
    std::string pattern =
        (fs::temp_directory_path() / "ltc-cache-XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    directory = pattern;
  }

  void TearDown() override { fs::remove_all(directory); }

  std::string fileOf(const std::string &key,
                     LtcCacheKind kind = LTC_CACHE_KERNEL) {
    return directory + "/" + cacheFileName(kind, ltcCacheSalt(), key);
  }

  static std::string readFile(const std::string &path) {
    std::ifstream stream(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(stream), {}};
  }

  static void writeFile(const std::string &path, const std::string &bytes) {
    std::ofstream(path, std::ios::binary) << bytes;
  }

  size_t numFiles() {
    size_t count = 0;
    for (const auto &entry : fs::directory_iterator(directory))
      count += entry.is_regular_file();
    return count;
  }

  /// Expects that a file with these bytes is ignored, removed and reported.
  void expectRejected(const std::string &bytes, const std::string &reason) {
    writeFile(fileOf("key"), bytes);
    TestCache cache(directory);
    EXPECT_EQ(cache.lookup("key"), "<miss>");
    ASSERT_EQ(cache.warnings.size(), 1u) << reason;
    EXPECT_NE(cache.warnings[0].find(reason), std::string::npos)
        << cache.warnings[0];
    EXPECT_FALSE(fs::exists(fileOf("key")));
    EXPECT_EQ(cache.statistics().rejected, 1u);
    cache.store("key", "rebuilt");
    TestCache next(directory);
    EXPECT_EQ(next.lookup("key"), "rebuilt");
    EXPECT_TRUE(next.warnings.empty());
  }

  std::string directory;
};

/// Expects one warning, which contains `reason`, and that the in-memory cache
/// works.
inline void expectMemoryServes(TestCache &cache, const std::string &reason) {
  cache.store("key", "value");
  cache.store("key2", "value2");
  EXPECT_EQ(cache.lookup("key"), "value");
  EXPECT_EQ(cache.lookup("key2"), "value2");
  ASSERT_EQ(cache.warnings.size(), 1u);
  EXPECT_NE(cache.warnings[0].find(reason), std::string::npos)
      << cache.warnings[0];
}

} // namespace torch_ltc::runtime

#endif // TORCH_LTC_RUNTIME_TEST_CACHEFIXTURE_H
