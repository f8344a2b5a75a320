//===- TracingThreadLoad.cpp - Load of the tracing thread -----------------===//

#include "TracingThreadLoad.h"

#include "OpenMp.h"

#include <algorithm>
#include <optional>

using namespace torch_ltc::runtime;

static std::optional<int64_t> nanoseconds(clockid_t clock) {
  timespec time;
  if (clock_gettime(clock, &time)) // the thread has ended
    return std::nullopt;
  return int64_t(time.tv_sec) * 1'000'000'000 + time.tv_nsec;
}

int TracingThreadLoad::numThreadsForShortCommands(const clockid_t *clock,
                                                  int numThreads) {
  int processors = omp_get_num_procs();
  if (!clock || numThreads == 1 || numThreads < processors || !isBusy(*clock))
    return numThreads;
  return std::max(1, processors - 1);
}

bool TracingThreadLoad::isBusy(clockid_t clock) {
  std::lock_guard<std::mutex> lock(mutex);
  std::optional<int64_t> caller = nanoseconds(clock);
  if (!caller)
    return false;
  int64_t wall = *nanoseconds(CLOCK_MONOTONIC);
  // A caller that computes all the time gets about half a processor if it
  // shares the processor with a member of the team, and more otherwise.
  double threshold = wasBusy ? 0.3 : 0.4;
  bool isKnown = clock == lastClock && wall > wallTime;
  wasBusy = isKnown &&
            double(*caller - callerTime) > threshold * double(wall - wallTime);
  lastClock = clock;
  wallTime = wall;
  callerTime = *caller;
  return wasBusy;
}
