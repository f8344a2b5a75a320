//===- source_location.cpp - The user's Python line -----------------------===//

#include "source/source_location.h"

#include "config/config.h"

#include <atomic>
#include <deque>
#include <map>
#include <mutex>
#include <unordered_map>
#include <utility>
#include <vector>

using namespace torch_ltc;

namespace {

std::atomic<FrameCapture> frameCapture{nullptr};

/// Assigns each distinct value an id, from 1 on, and looks up values by id.
template <typename T> class Interner {
public:
  uint32_t intern(const T &value) {
    std::lock_guard<std::mutex> lock(mutex);
    auto [entry, isNew] = numbers.try_emplace(value, values.size() + 1);
    if (isNew)
      values.push_back(value);
    return entry->second;
  }
  T lookup(uint32_t id) const {
    std::lock_guard<std::mutex> lock(mutex);
    return id && id <= values.size() ? values[id - 1] : T();
  }

private:
  mutable std::mutex mutex;
  std::map<T, uint32_t> numbers;
  std::deque<T> values;
};

using FileAndLine = std::pair<std::string, int>;

Interner<FileAndLine> &locations() {
  static auto *interner = new Interner<FileAndLine>;
  return *interner;
}

Interner<std::string> &modulePaths() {
  static auto *interner = new Interner<std::string>;
  return *interner;
}

thread_local std::vector<ModulePathId> modulePathStack;

} // namespace

void torch_ltc::setFrameCapture(FrameCapture capture) {
  frameCapture.store(capture);
}

LocationId torch_ltc::internLocation(const std::string &file, int line) {
  return locations().intern({file, line});
}

Location torch_ltc::locationOf(LocationId id) {
  auto [file, line] = locations().lookup(id);
  return {std::move(file), line};
}

LocationId torch_ltc::captureLocation() {
  FrameCapture capture = frameCapture.load(std::memory_order_relaxed);
  return capture ? capture() : 0;
}

LocationId torch_ltc::captureLocationIfWanted() {
  return config().source_info.get() ? captureLocation() : 0;
}

std::string torch_ltc::shortText(LocationId id) {
  if (!id)
    return "";
  Location location = locationOf(id);
  size_t slash = location.file.rfind('/');
  return location.file.substr(slash == std::string::npos ? 0 : slash + 1) +
         ":" + std::to_string(location.line);
}

std::string torch_ltc::messageSuffix(LocationId id) {
  if (!id)
    return "";
  Location location = locationOf(id);
  return " (at " + location.file + ":" + std::to_string(location.line) + ")";
}

void torch_ltc::pushModulePath(const std::string &path) {
  modulePathStack.push_back(modulePaths().intern(path));
}

void torch_ltc::popModulePath() {
  if (!modulePathStack.empty())
    modulePathStack.pop_back();
}

ModulePathId torch_ltc::currentModulePath() {
  return modulePathStack.empty() ? 0 : modulePathStack.back();
}

std::string torch_ltc::modulePathText(ModulePathId id) {
  return modulePaths().lookup(id);
}
