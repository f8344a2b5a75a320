//===- running_step.h - Whether a thread may wait for a step ----*- C++ -*-===//

#ifndef TORCH_LTC_MEMORY_RUNNING_STEP_H
#define TORCH_LTC_MEMORY_RUNNING_STEP_H

#include <c10/util/Exception.h>

#include <atomic>

namespace torch_ltc {

inline thread_local bool isRunningStep = false;

/// Whether the process was forked from one that had run steps, so that the
/// worker thread is missing in this process.
inline std::atomic<bool> isWorkerMissing{false};

/// While such an object exists, the calling thread is marked as running a step.
/// Code that runs in a step (for example, a custom op's kernel) would deadlock
/// if it waited for another step.
class RunningStepScope {
public:
  RunningStepScope() { isRunningStep = true; }
  ~RunningStepScope() { isRunningStep = false; }
  RunningStepScope(const RunningStepScope &) = delete;
  RunningStepScope &operator=(const RunningStepScope &) = delete;
};

inline void checkHasWorker() {
  TORCH_CHECK(!isWorkerMissing,
              "Device 'lazy' can't be used in a process forked from one that "
              "used it: its worker thread is missing here; start processes "
              "with the 'spawn' method, or give them CPU tensors (x.cpu()).");
}

inline void checkMayWait() {
  checkHasWorker();
  TORCH_CHECK(
      !isRunningStep,
      "Device 'lazy' can't be used by code that runs in one of its steps (a "
      "registered backend's function, a custom op's kernel): use the CPU "
      "tensors that it receives, and create results on the CPU.");
}

} // namespace torch_ltc

#endif // TORCH_LTC_MEMORY_RUNNING_STEP_H
