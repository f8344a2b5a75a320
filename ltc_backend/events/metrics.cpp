//===- metrics.cpp - Counters and timers ----------------------------------===//

#include "events/metrics.h"

#include <algorithm>
#include <atomic>
#include <mutex>

using namespace torch_ltc;

namespace {

constexpr size_t numCounters = size_t(Counter::numCounters);
constexpr size_t numTimers = size_t(Timer::numTimers);
constexpr size_t kMaxSamples = 1024;

const char *const counterNames[numCounters] = {
#define LTC_COUNTER(name, meaning) #name,
#include "events/metrics.def"
};

const char *const timerNames[numTimers] = {
#define LTC_TIMER(name, meaning) #name,
#include "events/metrics.def"
};

struct Samples {
  TimerValue value;
  std::vector<double> recent; // ring buffer
  size_t next = 0;
};

std::atomic<int64_t> counters[numCounters];
std::mutex timerMutex;
Samples timers[numTimers];

double sampleQuantile(std::vector<double> values, double q) {
  if (values.empty())
    return 0;
  auto nth = values.begin() + size_t(q * double(values.size() - 1));
  std::nth_element(values.begin(), nth, values.end());
  return *nth;
}

} // namespace

void torch_ltc::count(Counter counter, int64_t amount) {
  counters[size_t(counter)].fetch_add(amount, std::memory_order_relaxed);
}

int64_t torch_ltc::counterValue(Counter counter) {
  return counters[size_t(counter)].load(std::memory_order_relaxed);
}

void torch_ltc::recordTime(Timer timer, double seconds) {
  std::lock_guard<std::mutex> lock(timerMutex);
  Samples &samples = timers[size_t(timer)];
  ++samples.value.count;
  samples.value.total += seconds;
  samples.value.last = seconds;
  if (samples.recent.size() < kMaxSamples)
    samples.recent.push_back(seconds);
  else
    samples.recent[samples.next++ % kMaxSamples] = seconds;
}

std::vector<std::pair<std::string, int64_t>> torch_ltc::counterValues() {
  std::vector<std::pair<std::string, int64_t>> result;
  for (size_t i = 0; i < numCounters; ++i)
    result.emplace_back(counterNames[i], counterValue(Counter(i)));
  return result;
}

std::vector<std::pair<std::string, TimerValue>> torch_ltc::timerValues() {
  std::lock_guard<std::mutex> lock(timerMutex);
  std::vector<std::pair<std::string, TimerValue>> result;
  for (size_t i = 0; i < numTimers; ++i) {
    TimerValue value = timers[i].value;
    value.median = sampleQuantile(timers[i].recent, 0.5);
    value.p90 = sampleQuantile(timers[i].recent, 0.9);
    result.emplace_back(timerNames[i], value);
  }
  return result;
}

void torch_ltc::resetMetricValues() {
  for (auto &counter : counters)
    counter.store(0);
  std::lock_guard<std::mutex> lock(timerMutex);
  for (Samples &samples : timers)
    samples = Samples();
}
