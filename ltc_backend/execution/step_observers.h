//===- step_observers.h - What else happens with each step ------*- C++ -*-===//
//
// Observers name the results of a step, report and record it. The step
// executor calls them, in the order of the list in step_observers.cpp, after
// the step's results belong to tensors and before the step is scheduled.
//
//===----------------------------------------------------------------------===//

#ifndef TORCH_LTC_EXECUTION_STEP_OBSERVERS_H
#define TORCH_LTC_EXECUTION_STEP_OBSERVERS_H

#include "execution/program_choice.h"
#include "execution/scheduled_step.h"
#include "graph/live_tensors.h"

#include <vector>

namespace torch_ltc {

/// A step whose results belong to tensors.
struct ObservedStep {
  const Graph &graph;
  const ChosenProgram &chosen;
  /// The tensors that the step computes, in the order of the graph's roots.
  const std::vector<TensorDataPtr> &tensors;
  /// The data of the graph's results.
  const std::vector<HostDataPtr> &results;
  /// Observers may add what the run reports.
  ScheduledStep &step;
};

void callObservers(const ObservedStep &observed);

} // namespace torch_ltc

#endif // TORCH_LTC_EXECUTION_STEP_OBSERVERS_H
