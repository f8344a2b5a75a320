//===- step_queue.h - Scheduled steps and their workers ---------*- C++ -*-===//
//
// One worker thread runs the steps of all threads in the order in which they
// were scheduled. So a step may overwrite a buffer that earlier steps read. A
// thread that waits for a short step runs it itself if the queue is empty,
// because waking the worker and being woken takes longer than a small program.
//
// A thread that uses collectives has a worker of its own, because other ranks
// may reach the collectives of different threads in different orders. Workers
// compute one at a time; while one waits for other ranks, the next one runs. A
// step waits for the steps of other workers that compute its inputs, or that
// use a buffer which it overwrites.
//
//===----------------------------------------------------------------------===//

#ifndef TORCH_LTC_EXECUTION_STEP_QUEUE_H
#define TORCH_LTC_EXECUTION_STEP_QUEUE_H

#include "execution/scheduled_step.h"

#include <functional>

namespace torch_ltc {

/// Whether the calling thread's worker has as many steps, waiting or running,
/// as option max_steps_in_flight allows.
bool isQueueFull();
/// Waits while the queue of the calling thread's worker is full. The caller
/// must not hold the trace lock, which other threads need to schedule steps.
void waitForRoomInQueue();
/// Schedules a step. The caller holds the trace lock, and has held it since it
/// chose the step's inputs and the buffers that the step overwrites. If option
/// async_execution is off, returns when the step has run. If the caller will
/// wait for the step, the step is short and the queue is empty, the calling
/// thread runs the step, and releases the lock meanwhile.
void scheduleStep(ScheduledStep step);

/// The number of threads for programs that the calling thread schedules: option
/// num_threads, or torch's setting, which is per thread.
int numThreadsOfSteps();

/// Runs `work` on the calling thread's worker, after all steps that this worker
/// has to run. Doesn't wait for room in the queue. `work` must not throw.
void runOnWorker(std::function<void()> work);

/// While such an object exists, other workers may run programs. For a program
/// that waits for other processes.
class StepPause {
public:
  StepPause();
  ~StepPause();
  StepPause(const StepPause &) = delete;
  StepPause &operator=(const StepPause &) = delete;

private:
  const bool isPaused; // false if the calling thread doesn't run a program
};

/// Waits until everything scheduled has run. Returns the first error that
/// hasn't been raised, or null.
StepErrorPtr waitForScheduledSteps();

/// Whether a tensor that a step updates keeps its old value if that step fails.
/// `producer` is the completion of the step that computed the old value, or
/// null if no step computed it.
bool canKeepOldValue(const CompletionPtr &producer);

/// Runs the scheduled steps, then ends the workers. Reports an error that
/// hasn't been raised (events/unraised_errors.h).
void shutDownStepQueue();

} // namespace torch_ltc

#endif // TORCH_LTC_EXECUTION_STEP_QUEUE_H
