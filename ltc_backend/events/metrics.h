//===- metrics.h - Counters and timers --------------------------*- C++ -*-===//
//
// metrics.def lists the counters and timers.
//
//===----------------------------------------------------------------------===//

#ifndef TORCH_LTC_EVENTS_METRICS_H
#define TORCH_LTC_EVENTS_METRICS_H

#include <chrono>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace torch_ltc {

enum class Counter {
#define LTC_COUNTER(name, meaning) name,
#include "events/metrics.def"
  numCounters
};

enum class Timer {
#define LTC_TIMER(name, meaning) name,
#include "events/metrics.def"
  numTimers
};

void count(Counter counter, int64_t amount = 1);
int64_t counterValue(Counter counter);
void recordTime(Timer timer, double seconds);

struct TimerValue {
  int64_t count = 0;
  double total = 0, last = 0;
  double median = 0, p90 = 0; // of the last 1024 samples
};

std::vector<std::pair<std::string, int64_t>> counterValues();
std::vector<std::pair<std::string, TimerValue>> timerValues();
void resetMetricValues();

/// Seconds since construction.
class Stopwatch {
public:
  double seconds() const {
    return std::chrono::duration<double>(Clock::now() - start).count();
  }

private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point start = Clock::now();
};

} // namespace torch_ltc

#endif // TORCH_LTC_EVENTS_METRICS_H
