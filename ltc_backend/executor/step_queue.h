//===- step_queue.h - Scheduled steps, first in first out -------*- C++ -*-===//
//
// One worker thread runs the steps of all threads in the order in which they
// were scheduled. So a step may overwrite a buffer that earlier steps read.
//
//===----------------------------------------------------------------------===//

#ifndef TORCH_LTC_EXECUTOR_STEP_QUEUE_H
#define TORCH_LTC_EXECUTOR_STEP_QUEUE_H

#include "executor/program.h"

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
  /// Of the thread that scheduled it, while torch's profiler watches: the
  /// worker's spans belong to the same profile.
  std::optional<at::ThreadLocalState> threadState;
};

/// Schedules a step; waits while too many are waiting or running. Runs it at
/// once on the calling thread if option async_execution is off.
void scheduleStep(ScheduledStep step);

/// Waits until everything scheduled has run. Returns the first error that
/// nobody has read since the last call, "" if there is none.
std::string waitForScheduledSteps();

/// The first error that nobody has read, as above, of what has run so far.
std::string takeScheduledError();
/// Drops that error if it is this one: it was told.
void noteErrorIsTold(const std::string &error);

/// Whether a new value that replaces one from `producer` (null: not from a
/// step) belongs to a step's updates: the old value must be whole if the step
/// fails.
bool canKeepOldValue(const CompletionPtr &producer);

/// Runs what is scheduled, then ends the worker.
void shutDownStepQueue();

} // namespace torch_ltc

#endif // TORCH_LTC_EXECUTOR_STEP_QUEUE_H
