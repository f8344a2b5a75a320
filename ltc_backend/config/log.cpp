//===- log.cpp - Messages for the user ------------------------------------===//

#include "config/log.h"

#include <cstdio>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

using namespace torch_ltc;

namespace {

struct Log {
  std::mutex mutex;
  std::shared_ptr<const LogHook> hook;
  bool hookWasSet = false;
  std::vector<std::pair<LogLevel, std::string>> kept;
};

// Never destroyed: the worker thread may log during process exit.
Log &state() {
  static Log *log = new Log;
  return *log;
}

// Maximum number of messages stored until a hook is set: sufficient for a
// warning about every option in the environment. A process without the Python
// package never sets a hook, and must not collect messages forever.
constexpr size_t kMaxKeptMessages = 64;

} // namespace

void torch_ltc::log(LogLevel level, const std::string &sentence) {
  std::shared_ptr<const LogHook> hook;
  {
    std::lock_guard<std::mutex> lock(state().mutex);
    hook = state().hook;
    if (!hook && !state().hookWasSet &&
        state().kept.size() < kMaxKeptMessages) {
      state().kept.emplace_back(level, sentence);
      return;
    }
  }
  // The hook is called without the lock, because it takes the GIL.
  if (hook)
    (*hook)(level, sentence);
  else if (level >= LogLevel::Warning)
    std::fprintf(stderr, "torch_ltc: %s\n", sentence.c_str());
}

void torch_ltc::setLogHook(LogHook hook) {
  std::vector<std::pair<LogLevel, std::string>> kept;
  {
    std::lock_guard<std::mutex> lock(state().mutex);
    state().hook =
        hook ? std::make_shared<const LogHook>(std::move(hook)) : nullptr;
    state().hookWasSet = true;
    kept.swap(state().kept);
  }
  for (auto &[level, sentence] : kept)
    log(level, sentence);
}
