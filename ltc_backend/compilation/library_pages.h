//===- library_pages.h - Memory of libraries that are idle ------*- C++ -*-===//
//
// MLIR's and LLVM's code is over 100 MB of a process's resident memory once a
// program has been compiled, and a steady loop never calls it again. Its pages
// are backed by files: they can be released and are read again on demand.
//
//===----------------------------------------------------------------------===//

#ifndef TORCH_LTC_COMPILATION_LIBRARY_PAGES_H
#define TORCH_LTC_COMPILATION_LIBRARY_PAGES_H

#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <mutex>
#include <thread>

namespace torch_ltc {

/// Reports that a program was made, which may have used the compiler.
void noteCompilerUse();

/// Releases the pages of the compiler's and the runtime's libraries and of
/// their dependencies (read-only mappings of files), and the heap that
/// compilations have freed. To be called by the background compiler when it has
/// nothing more to do, so that its memory isn't needed on top of the new
/// program's.
void releaseCompilerMemory();

/// After some steps without a new program or a compilation, does the same, and
/// releases cached buffers. This takes a few milliseconds, and is repeated so
/// rarely that it costs at most a hundredth of the time. To be called after
/// each step, by the thread that ran the step.
void releaseIdleLibraryPages();

/// While an object of this class exists, the pages of the compiler's and the
/// runtime's libraries, and of their dependencies, are released whenever the
/// process's resident file pages have grown by 20 MB, or by a twentieth of its
/// memory. Loading LLVM and MLIR reads 85 MB, because Linux maps 64 kB for each
/// of hundreds of static constructors, and compiling reads another 35 MB, most
/// of it once.
class LibraryPagesLimit {
public:
  LibraryPagesLimit();
  ~LibraryPagesLimit();
  LibraryPagesLimit(const LibraryPagesLimit &) = delete;
  LibraryPagesLimit &operator=(const LibraryPagesLimit &) = delete;

private:
  void watch();
  /// Resident bytes of the process, and those that are backed by files.
  struct Resident {
    int64_t all = 0, ofFiles = 0;
  };
  Resident resident();

  struct Closer {
    void operator()(std::FILE *file) const { std::fclose(file); }
  };
  int64_t pageSize;
  std::unique_ptr<std::FILE, Closer> file;
  std::mutex mutex;
  std::condition_variable changed;
  bool isEnding = false;
  std::thread watcher;
};

} // namespace torch_ltc

#endif // TORCH_LTC_COMPILATION_LIBRARY_PAGES_H
