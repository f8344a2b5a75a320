//===- scheduled_step.h - A program's run, with its data --------*- C++ -*-===//
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

#ifndef TORCH_LTC_EXECUTION_SCHEDULED_STEP_H
#define TORCH_LTC_EXECUTION_SCHEDULED_STEP_H

#include "programs/head_start.h"
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
  /// The chain of collectives (graph/effects.h) whose worker runs the step. If
  /// it is 0, `scheduleStep` sets it to the calling thread's chain, which is 0
  /// for all threads without collectives.
  int64_t chain = 0;
  /// Steps of other workers that must end before this step overwrites a buffer.
  std::vector<CompletionPtr> follows;
  /// The sequence of the scheduling thread's steps, and this step's number in
  /// the sequence.
  std::shared_ptr<StepSequence> sequence;
  uint64_t sequenceNumber = 0;
};

} // namespace torch_ltc

#endif // TORCH_LTC_EXECUTION_SCHEDULED_STEP_H
