//===- progress_line.cpp - Report of a long compilation -------------------===//

#include "compilation/progress_line.h"

#include "config/log.h"
#include "memory/blocking.h"

#include <chrono>

using namespace torch_ltc;

ProgressLine::ProgressLine(std::string sentence)
    : watcher([this, sentence = std::move(sentence)] {
        std::unique_lock<std::mutex> lock(mutex);
        if (changed.wait_for(lock, std::chrono::seconds(1),
                             [this] { return isOver; }))
          return;
        lock.unlock();
        log(LogLevel::Warning, sentence);
      }) {}

ProgressLine::~ProgressLine() {
  {
    std::lock_guard<std::mutex> lock(mutex);
    isOver = true;
  }
  changed.notify_all();
  // Releases the GIL, which the watcher needs to log.
  BlockingScope blocking;
  watcher.join();
}
