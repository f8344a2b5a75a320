//===- progress_line.h - Report of a long compilation -----------*- C++ -*-===//

#ifndef TORCH_LTC_COMPILATION_PROGRESS_LINE_H
#define TORCH_LTC_COMPILATION_PROGRESS_LINE_H

#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

namespace torch_ltc {

/// Logs a sentence as a warning if the object exists for more than a second, so
/// that a process that seems to hang explains why.
class ProgressLine {
public:
  explicit ProgressLine(std::string sentence);
  ~ProgressLine();
  ProgressLine(const ProgressLine &) = delete;

private:
  std::mutex mutex;
  std::condition_variable changed;
  bool isOver = false;
  std::thread watcher;
};

} // namespace torch_ltc

#endif // TORCH_LTC_COMPILATION_PROGRESS_LINE_H
