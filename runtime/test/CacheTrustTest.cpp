//===- CacheTrustTest.cpp - Trust in the owners and modes of cache files --===//

#include "CacheFixture.h"

#include <csignal>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>

using namespace torch_ltc::runtime;

namespace {

constexpr uid_t kNobody = 65534;

class CacheTrustTest : public CacheTest {
protected:
  /// Stores an entry in the cache at `path`, then calls `change`, which lets
  /// another user write something on that path. Expects that the entry isn't
  /// read, and that `reason` is reported.
  template <typename Change>
  void expectRejected(const std::string &path, Change change,
                      const std::string &reason) {
    {
      TestCache cache(path);
      cache.store("planted", "code");
      ASSERT_TRUE(cache.warnings.empty()) << cache.warnings[0];
    }
    change();
    TestCache cache(path);
    EXPECT_EQ(cache.lookup("planted"), "<miss>") << reason;
    expectMemoryServes(cache, reason);
  }

  static void setMode(const std::string &path, mode_t mode) {
    ASSERT_EQ(chmod(path.c_str(), mode), 0);
  }
  static void give(const std::string &path) {
    ASSERT_EQ(lchown(path.c_str(), kNobody, kNobody), 0);
  }
};

} // namespace

TEST_F(CacheTrustTest, PathIsAFile) {
  writeFile(directory + "/file", "");
  TestCache cache(directory + "/file");
  expectMemoryServes(cache, "not a directory");
  TestCache below(directory + "/file/below");
  expectMemoryServes(below, "can't be used");
}

TEST_F(CacheTrustTest, FoldersThatOthersMayWrite) {
  struct {
    mode_t mode;
    const char *reason;
  } cases[] = {
      {0777, "every user may write to"}, {0775, "its group may write to"},
      {0770, "its group may write to"},  {0702, "every user may write to"},
      {0720, "its group may write to"},  {01777, "every user may write to"}};
  for (auto [mode, reason] : cases) {
    setMode(directory, 0700);
    expectRejected(
        directory, [&, mode = mode] { setMode(directory, mode); }, reason);
  }
}

TEST_F(CacheTrustTest, ParentsThatOthersMayWrite) {
  std::string path = directory + "/a/b/cache";
  for (const char *parent : {"/a", "/a/b"})
    for (mode_t mode : {0777, 0775}) {
      expectRejected(
          path, [&] { setMode(directory + parent, mode); },
          "may write to '" + directory + parent + "'");
      setMode(directory + parent, 0755);
    }
  // In a folder with the sticky bit, like /tmp, nobody can replace another
  // user's files.
  setMode(directory + "/a", 01777);
  TestCache cache(path);
  EXPECT_EQ(cache.lookup("planted"), "code");
  EXPECT_TRUE(cache.warnings.empty());
}

TEST_F(CacheTrustTest, CreatedFoldersAreTheUsersAlone) {
  mode_t before = umask(0);
  {
    TestCache cache(directory + "/a/b");
    cache.store("key", "value");
    EXPECT_TRUE(cache.warnings.empty());
  }
  umask(before);
  for (const char *folder : {"/a", "/a/b"})
    EXPECT_EQ(fs::status(directory + folder).permissions(),
              fs::perms::owner_all);
}

TEST_F(CacheTrustTest, LinksAreFollowedToWhatTheyName) {
  fs::create_directory(directory + "/real");
  setMode(directory + "/real", 0700);
  fs::create_directory_symlink("real", directory + "/link");
  fs::create_directory_symlink(directory + "/link/../link", directory + "/far");
  {
    TestCache cache(directory + "/link");
    cache.store("key", "value");
    EXPECT_TRUE(cache.warnings.empty());
  }
  TestCache far(directory + "/far");
  EXPECT_EQ(far.lookup("key"), "value");
  expectRejected(
      directory + "/far", [&] { setMode(directory + "/real", 0770); },
      "its group may write to '" + directory + "/real'");
  fs::create_directory_symlink("round", directory + "/round");
  TestCache round(directory + "/round");
  expectMemoryServes(round, "can't be used");
}

TEST_F(CacheTrustTest, WhatBelongsToOthers) {
  if (geteuid() != 0)
    GTEST_SKIP() << "only root can give files away";
  std::string path = directory + "/parent/cache";
  expectRejected(path, [&] { give(path); }, "belongs to another user");
  ASSERT_EQ(chown(path.c_str(), 0, 0), 0);
  expectRejected(
      path, [&] { give(directory + "/parent"); }, "belongs to another user");
  fs::create_directory_symlink("parent", directory + "/link");
  ASSERT_EQ(chown((directory + "/parent").c_str(), 0, 0), 0);
  expectRejected(
      directory + "/link/cache", [&] { give(directory + "/link"); },
      "isn't the user's");
}

TEST_F(CacheTrustTest, EntriesThatOthersMayHaveWritten) {
  {
    TestCache cache(directory);
    cache.store("key", "value");
  }
  std::string good = readFile(fileOf("key"));
  for (mode_t mode : {0620, 0602, 0660, 0666}) {
    writeFile(fileOf("key"), good);
    setMode(fileOf("key"), mode);
    TestCache cache(directory);
    EXPECT_EQ(cache.lookup("key"), "<miss>") << mode;
    ASSERT_EQ(cache.warnings.size(), 1u);
    EXPECT_NE(cache.warnings[0].find("written by other users"),
              std::string::npos);
    EXPECT_EQ(cache.statistics().rejected, 1u);
  }
  if (geteuid() == 0) {
    writeFile(fileOf("key"), good);
    setMode(fileOf("key"), 0600);
    give(fileOf("key"));
    TestCache cache(directory);
    EXPECT_EQ(cache.lookup("key"), "<miss>");
    EXPECT_NE(cache.warnings.at(0).find("belongs to another user"),
              std::string::npos);
  }
}

/// FIFOs, links, directories and sockets don't block a reader, and a store
/// replaces them, except for directories.
TEST_F(CacheTrustTest, EntriesThatAreNoFiles) {
  auto expectMiss = [&](const char *what, bool isReplaced) {
    TestCache cache(directory);
    EXPECT_EQ(cache.lookup("key"), "<miss>") << what;
    cache.store("key", "value");
    TestCache next(directory);
    EXPECT_EQ(next.lookup("key"), isReplaced ? "value" : "<miss>") << what;
    fs::remove_all(fileOf("key"));
  };
  alarm(60); // ends the test if a reader blocks
  ASSERT_EQ(mkfifo(fileOf("key").c_str(), 0600), 0);
  expectMiss("FIFO", true);
  fs::create_symlink("elsewhere", fileOf("key"));
  expectMiss("link", true);
  fs::create_directory(fileOf("key"));
  expectMiss("directory", false);
  int listener = socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  ASSERT_LT(fileOf("key").size(), sizeof(address.sun_path));
  std::strcpy(address.sun_path, fileOf("key").c_str());
  ASSERT_EQ(
      bind(listener, reinterpret_cast<sockaddr *>(&address), sizeof(address)),
      0);
  expectMiss("socket", true);
  close(listener);
  // Files that aren't entries don't block a scan either.
  ASSERT_EQ(mkfifo((directory + "/tmp-1-2-3").c_str(), 0600), 0);
  ASSERT_EQ(mkfifo((directory + "/x.ltc").c_str(), 0600), 0);
  TestCache cache(directory, 100);
  EXPECT_TRUE(cache.warnings.empty());
  alarm(0);
}

TEST_F(CacheTrustTest, TemporariesOfKilledProcesses) {
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  std::string mine = directory + "/tmp-of-a-process";
  pid_t pid = fork();
  ASSERT_GE(pid, 0);
  if (pid == 0) { // writes, like a store
    int file = open(mine.c_str(), O_WRONLY | O_CREAT, 0600);
    std::string bytes(3000, 'x');
    bool isWritten = flock(file, LOCK_EX) == 0 &&
                     write(file, bytes.data(), bytes.size()) == 3000 &&
                     write(ready[1], "", 1) == 1;
    if (!isWritten)
      _exit(1);
    for (;;)
      pause();
  }
  char byte;
  ASSERT_EQ(read(ready[0], &byte, 1), 1);
  {
    TestCache cache(directory);
    EXPECT_TRUE(fs::exists(mine));
    EXPECT_EQ(cache.statistics().disk_bytes, 3000u);
  }
  kill(pid, SIGKILL);
  ASSERT_EQ(waitpid(pid, nullptr, 0), pid);
  TestCache cache(directory);
  EXPECT_FALSE(fs::exists(mine));
  EXPECT_EQ(cache.statistics().disk_bytes, 0u);
  close(ready[0]);
  close(ready[1]);
}
