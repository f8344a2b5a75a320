//===- step_queue.h - Scheduled steps, first in first out -------*- C++ -*-===//
//
// One worker thread runs the steps of all threads in the order in which they
// were scheduled. So a step may overwrite a buffer that earlier steps read. A
// thread that waits for a short step runs it itself if the queue is empty,
// because waking the worker and being woken takes longer than a small program.
//
// If a step fails, results that don't depend on the failed op are computed
// nevertheless (programs/partial_evaluation.h), unless the program had already
// overwritten a parameter. Each read of any other result raises the step's
// error. A tensor that the step would have written in place keeps its old
// value; the first read of it, or of a value that later steps computed from it,
// raises the error once. Tensors unrelated to the step stay readable. When the
// error of a step is raised, the errors of all steps that the same thread has
// scheduled so far count as raised (memory/completion.h).
//
//===----------------------------------------------------------------------===//

#ifndef TORCH_LTC_EXECUTION_STEP_QUEUE_H
#define TORCH_LTC_EXECUTION_STEP_QUEUE_H

#include "programs/head_start.h"
#include "programs/program.h"

#include <ATen/ThreadLocalState.h>

#include <functional>
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
  /// For each parameter, the completion of the step that computes it, or null.
  /// Finished steps are included, because they may have failed.
  std::vector<CompletionPtr> producers;
  CompletionPtr completion = std::make_shared<Completion>();
  /// The completion for outputs that replace parameters' values. After a run
  /// that failed before it overwrote a parameter, such outputs hold the old
  /// value if they have no new one.
  CompletionPtr updatesCompletion =
      std::make_shared<Completion>(Completion::Of::Updates);
  RunConditions conditions;
  int64_t number = 0;
  uint64_t event = 0; // in the step log
  std::string location;
  /// Lines of the graph's nodes, with option source_info.
  std::vector<LocationId> nodeLocations;
  /// The ops that have run already; null if none has.
  HeadStartPtr headStart;
  /// Whether the scheduling thread will wait for the step's results next.
  bool isAwaited = false;
  /// State of the scheduling thread while torch's profiler is active, so that
  /// the worker's spans belong to the same profile.
  std::optional<at::ThreadLocalState> threadState;
  /// The sequence of the scheduling thread's steps, and this step's number in
  /// the sequence.
  std::shared_ptr<StepSequence> sequence;
  uint64_t sequenceNumber = 0;
};

/// Whether as many steps are waiting or running as option max_steps_in_flight
/// allows.
bool isQueueFull();
/// Waits while the queue is full. The caller must not hold the trace lock,
/// which other threads need to schedule steps.
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

/// Runs `work` on the worker thread after all steps scheduled so far. Doesn't
/// wait for room in the queue. `work` must not throw.
void runOnWorker(std::function<void()> work);

/// Waits until everything scheduled has run. Returns the first error that
/// hasn't been raised, or null.
StepErrorPtr waitForScheduledSteps();

/// Whether a tensor that a step updates keeps its old value if that step fails.
/// `producer` is the completion of the step that computed the old value, or
/// null if no step computed it.
bool canKeepOldValue(const CompletionPtr &producer);

/// Runs the scheduled steps, then ends the worker. Logs an error that hasn't
/// been raised.
void shutDownStepQueue();

} // namespace torch_ltc

#endif // TORCH_LTC_EXECUTION_STEP_QUEUE_H
