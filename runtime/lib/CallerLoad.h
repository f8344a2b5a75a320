//===- CallerLoad.h - The share of a processor that the caller takes ------===//
//
// A step runs on a thread of its own while the thread that traced it goes on
// with the next. Where both together have more threads than processors, a team
// waits at the end of a parallel command for the member whose processor the
// tracing thread has; libgomp's waiting members spin (some milliseconds, GCC
// 12), and so keep the tracing thread from its processor in turn. With much to
// trace a step is then sooner done by a team that leaves it one.
//
//===----------------------------------------------------------------------===//

#ifndef TORCH_LTC_RUNTIME_CALLERLOAD_H
#define TORCH_LTC_RUNTIME_CALLERLOAD_H

#include <cstdint>
#include <mutex>
#include <time.h>

namespace torch_ltc::runtime {

/// Watches the CPU time of the thread that asks for an executable's runs.
class CallerLoad {
public:
  /// At the start of a run: the threads for its short commands, `numThreads` or
  /// fewer. `clock`: the caller's (pthread_getcpuclockid), null if it waits for
  /// the run.
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
