//===- step_queue.h - Scheduled steps, first in first out -------*- C++ -*-===//
//
// One worker thread runs the steps of all threads in the order in which they
// were scheduled. So a step may overwrite a buffer that earlier steps read. A
// thread that waits for a short step runs it itself if the queue is empty: to
// wake the worker and to be woken takes longer than a small program.
//
// A step that fails has an error. Reading one of its results raises it each
// time. A tensor that the step was to write in place keeps its old value; the
// first read of it, or of what later steps make of it, raises the error
// once. What has nothing to do with the step stays readable. Errors of steps
// that a thread had scheduled before one of its errors was raised count as
// known (memory/completion.h).
//
//===----------------------------------------------------------------------===//

#ifndef TORCH_LTC_EXECUTION_STEP_QUEUE_H
#define TORCH_LTC_EXECUTION_STEP_QUEUE_H

#include "programs/program.h"

#include <ATen/ThreadLocalState.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace torch_ltc {

struct ScheduledStep {
  ProgramPtr program;
  std::vector<BufferPtr> parameters;
  std::vector<BufferPtr> outputs;
  std::vector<DynamicScalar> scalars;
  /// Unfinished steps that write the parameters.
  std::vector<CompletionPtr> inputs;
  CompletionPtr completion = std::make_shared<Completion>();
  /// Of the outputs that replace parameters' values: after a run that failed
  /// before it overwrote any parameter they hold the old ones.
  CompletionPtr updatesCompletion =
      std::make_shared<Completion>(Completion::Of::Updates);
  RunConditions conditions;
  int64_t number = 0;
  uint64_t event = 0; // in the step log
  std::string location;
  /// Steps that make the values which updates replace: after an error these
  /// stand again, unless one of those steps failed as well.
  std::vector<CompletionPtr> oldValues;
  /// Of the graph's nodes, with option source_info.
  std::vector<LocationId> nodeLocations;
  /// The thread that schedules it waits for its results next.
  bool isAwaited = false;
  /// Of the thread that scheduled it, while torch's profiler watches: the
  /// worker's spans belong to the same profile.
  std::optional<at::ThreadLocalState> threadState;
  /// The scheduling thread's steps, and which of them it is.
  std::shared_ptr<StepSequence> sequence;
  uint64_t sequenceNumber = 0;
};

/// Whether as many steps are waiting or running as option max_steps_in_flight
/// allows.
bool isQueueFull();
/// Waits while it is. Without the trace lock: steps are scheduled with it.
void waitForRoomInQueue();
/// Schedules a step. With the trace lock held since its inputs and the buffers
/// that it overwrites were decided on. Returns when it has run if option
/// async_execution is off, or if it is awaited, short, and nothing is before
/// it: then the calling thread runs it (the lock is released meanwhile).
void scheduleStep(ScheduledStep step);

/// Waits until everything scheduled has run. Returns the first error that
/// hasn't been raised, null if there is none.
StepErrorPtr waitForScheduledSteps();

/// Whether a new value that replaces one from `producer` (null: not from a
/// step) belongs to a step's updates: the old value must be whole if the step
/// fails.
bool canKeepOldValue(const CompletionPtr &producer);

/// Runs what is scheduled, then ends the worker. Logs an error that hasn't
/// been raised.
void shutDownStepQueue();

} // namespace torch_ltc

#endif // TORCH_LTC_EXECUTION_STEP_QUEUE_H
