//===- metrics.h - Counters and timers --------------------------*- C++ -*-===//
//
// Names and meanings are part of the Python interface (torch_ltc.metrics()).
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
  steps,
  executions,
  compilations,
  programs_bound,
  program_memory_hits,
  program_disk_hits,
  kernels_compiled,
  kernel_cache_hits,
  fallback_calls,
  implicit_syncs,
  graph_cuts,
  donated_buffers,
  traced_ops,
  cache_rejected,
  compile_failures,
  replayed_steps,
  replayed_ops,
  idle_releases,
  numCounters
};

enum class Timer {
  trace_to_schedule,
  compile,
  execute,
  fallback,
  sync,
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
