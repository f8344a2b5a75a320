//===- CallerLoad.h - Share of a processor that the calling thread uses ---===//
//
// A step runs on a worker thread while the thread that traced it continues with
// the next step. If the step's team and the tracing thread need more processors
// than there are, the team waits at the end of a parallel command for the
// member that shares a processor with the tracing thread; libgomp's waiting
// members spin (for some milliseconds, GCC 12), and so keep the tracing thread
// off its processor in turn. If there is much to trace, a step finishes earlier
// with a team that leaves the tracing thread a processor.
//
//===----------------------------------------------------------------------===//

#ifndef TORCH_LTC_RUNTIME_CALLERLOAD_H
#define TORCH_LTC_RUNTIME_CALLERLOAD_H

#include <cstdint>
#include <mutex>
#include <time.h>

namespace torch_ltc::runtime {

/// Measures the CPU time of the thread that requests an executable's runs.
class CallerLoad {
public:
  /// The number of threads for a run's short commands, at most `numThreads`. To
  /// be called at the start of the run. `clock` is the caller's CPU-time clock
  /// (pthread_getcpuclockid), or null if the caller waits for the run.
  int threadsForShortCommands(const clockid_t *clock, int numThreads);

private:
  bool isBusy(clockid_t clock);

  std::mutex mutex;
  clockid_t lastClock = 0;
  int64_t wallTime = 0, callerTime = 0; // ns at the start of the last run
  bool wasBusy = false;
};

} // namespace torch_ltc::runtime

#endif // TORCH_LTC_RUNTIME_CALLERLOAD_H
