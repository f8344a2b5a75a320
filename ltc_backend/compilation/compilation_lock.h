//===- compilation_lock.h - One compilation for all processes ---*- C++ -*-===//
//
// The ranks of a job need the same programs at the same time. One rank compiles
// each program; the others wait and find it in the disk cache.
//
//===----------------------------------------------------------------------===//

#ifndef TORCH_LTC_COMPILATION_COMPILATION_LOCK_H
#define TORCH_LTC_COMPILATION_COMPILATION_LOCK_H

#include <string>

namespace torch_ltc {

/// A lock between the processes that share the disk cache. A process that can't
/// acquire it continues without it after 5 minutes, or at once if the cache
/// can't be written; the cost is a second compilation.
class CompilationLock {
public:
  /// Locks the program `name`; waits while another process compiles it. On the
  /// main thread, throws the exception that a signal handler raises meanwhile.
  /// Throws std::runtime_error if compilations are cancelled.
  explicit CompilationLock(const std::string &name);
  ~CompilationLock();
  CompilationLock(const CompilationLock &) = delete;
  CompilationLock &operator=(const CompilationLock &) = delete;

private:
  void openFile();
  bool tryLock();

  std::string path;
  int descriptor = -1;
};

} // namespace torch_ltc

#endif // TORCH_LTC_COMPILATION_COMPILATION_LOCK_H
