//===- TracingThreadLoad.h - Load of the tracing thread ---------*- C++ -*-===//
//
// A step runs on a worker thread while the thread that traced it continues with
// the next step. If the step's team and the tracing thread together have more
// threads than there are processors, one member of the team shares a processor
// with the tracing thread. At the end of each parallel command, the other
// members wait for this member; because they spin (libgomp of GCC 12, for some
// milliseconds), the tracing thread can't use their processors. If there is
// much to trace, a step therefore finishes earlier with a smaller team that
// leaves one processor to the tracing thread.
//
//===----------------------------------------------------------------------===//

#ifndef TORCH_LTC_RUNTIME_TRACINGTHREADLOAD_H
#define TORCH_LTC_RUNTIME_TRACINGTHREADLOAD_H

#include <cstdint>
#include <mutex>
#include <time.h>

namespace torch_ltc::runtime {

/// Measures the CPU time of the thread that requests an executable's runs.
class TracingThreadLoad {
public:
  /// The number of threads for a run's short commands, at most `numThreads`. To
  /// be called at the start of the run. `clock` is the caller's CPU-time clock
  /// (pthread_getcpuclockid), or null if the caller waits for the run.
  int numThreadsForShortCommands(const clockid_t *clock, int numThreads);

private:
  bool isBusy(clockid_t clock);

  std::mutex mutex;
  clockid_t lastClock = 0;
  int64_t wallTime = 0, callerTime = 0; // ns at the start of the last run
  bool wasBusy = false;
};

} // namespace torch_ltc::runtime

#endif // TORCH_LTC_RUNTIME_TRACINGTHREADLOAD_H
