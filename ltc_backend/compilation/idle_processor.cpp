//===- idle_processor.cpp - Whether a processor is idle -------------------===//

#include "compilation/idle_processor.h"

#include <chrono>
#include <mutex>
#include <optional>
#include <utility>

using namespace torch_ltc;

namespace {

/// The kernel counts in ticks of 10 ms.
constexpr std::chrono::milliseconds kInterval{100};
/// Of a processor. Background services of the system use some of it.
constexpr double kMostlyIdle = 0.7;

class ProcessorUse {
public:
  bool hasIdle() {
    std::lock_guard<std::mutex> lock(mutex);
    auto now = std::chrono::steady_clock::now();
    if (now < nextSample)
      return isIdle;
    nextSample = now + kInterval;
    LtcProcessorTimes times;
    if (!ltcReadProcessorTimes(&times))
      return false;
    std::optional<LtcProcessorTimes> before = std::exchange(last, times);
    if (!before)
      return false;
    isIdle = leftProcessorIdle(*before, times);
    return isIdle;
  }

private:
  std::mutex mutex;
  std::chrono::steady_clock::time_point nextSample{};
  std::optional<LtcProcessorTimes> last;
  bool isIdle = false;
};

} // namespace

bool torch_ltc::leftProcessorIdle(const LtcProcessorTimes &before,
                                  const LtcProcessorTimes &after) {
  double used = (after.all - before.all) / (after.wall - before.wall);
  return after.processors - used >= kMostlyIdle;
}

bool torch_ltc::hasIdleProcessor() {
  // Never destroyed: threads may ask until the process ends.
  static auto *use = new ProcessorUse;
  return use->hasIdle();
}
