//===- idle_processor.cpp - Whether a processor is idle -------------------===//

#include "compilation/idle_processor.h"

#include <chrono>
#include <mutex>
#include <optional>
#include <utility>

using namespace torch_ltc;

namespace {

/// The time between samples: ten ticks of Linux's clock, of 10 ms each.
constexpr std::chrono::milliseconds kInterval{100};
/// Minimum unused share of a processor that counts as idle. Background services
/// of the system may use the rest.
constexpr double kMostlyIdle = 0.7;

class ProcessorUse {
public:
  bool hasIdle() {
    std::lock_guard<std::mutex> lock(mutex);
    sample();
    return isIdle;
  }

  double unusedByOthers() {
    std::lock_guard<std::mutex> lock(mutex);
    sample();
    return unused;
  }

private:
  void sample() {
    auto now = std::chrono::steady_clock::now();
    if (now < nextSample)
      return;
    nextSample = now + kInterval;
    LtcProcessorTimes times;
    isIdle = false;
    unused = 0;
    if (!ltcReadProcessorTimes(&times))
      return;
    std::optional<LtcProcessorTimes> before = std::exchange(last, times);
    if (!before)
      return;
    isIdle = leftProcessorIdle(*before, times);
    unused = times.processors - ltcProcessorsOfOthers(&*before, &times);
  }

  std::mutex mutex;
  std::chrono::steady_clock::time_point nextSample{};
  std::optional<LtcProcessorTimes> last;
  bool isIdle = false;
  double unused = 0; // processors
};

/// Never destroyed: threads may use it until the process ends.
ProcessorUse &processorUse() {
  static auto *use = new ProcessorUse;
  return *use;
}

} // namespace

bool torch_ltc::leftProcessorIdle(const LtcProcessorTimes &before,
                                  const LtcProcessorTimes &after) {
  double used = (after.all - before.all) / (after.wall - before.wall);
  return after.processors - used >= kMostlyIdle;
}

bool torch_ltc::hasIdleProcessor() { return processorUse().hasIdle(); }

bool torch_ltc::hasProcessorsFor(int numThreads) {
  return processorUse().unusedByOthers() >= numThreads - 1 + kMostlyIdle;
}
