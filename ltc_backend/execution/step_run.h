//===- step_run.h - The run of a scheduled step -----------------*- C++ -*-===//

#ifndef TORCH_LTC_EXECUTION_STEP_RUN_H
#define TORCH_LTC_EXECUTION_STEP_RUN_H

#include "execution/scheduled_step.h"

namespace torch_ltc {

struct RunOutcome {
  StepErrorPtr error;
  /// The error of the failed step that left an old value in an input.
  StepErrorPtr staleInput;
  /// If the step failed and its parameters are intact: the outcome of each
  /// output as a result, and its outcome as an update of a parameter.
  Completion::Outcomes ofResults = {}, ofUpdates = {};
};

/// Runs the step on the calling thread, logs it, and destroys it: its buffers
/// must be released before waiting threads are notified, because these may
/// allocate at once.
RunOutcome runStep(ScheduledStep step);

} // namespace torch_ltc

#endif // TORCH_LTC_EXECUTION_STEP_RUN_H
