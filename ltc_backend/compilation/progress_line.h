//===- progress_line.h - A compilation that lasts ---------------*- C++ -*-===//

#ifndef TORCH_LTC_COMPILATION_PROGRESS_LINE_H
#define TORCH_LTC_COMPILATION_PROGRESS_LINE_H

#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

namespace torch_ltc {

/// Says `sentence`, as a warning, if it lives for more than a second: a process
/// that seems to hang says why.
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
