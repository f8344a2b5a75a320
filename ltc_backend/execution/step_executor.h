//===- step_executor.h - From pending graphs to results ---------*- C++ -*-===//
//
// The pipeline of every execution, whatever triggers it:
//
//   pending tensors -> graph and hash -> donation -> program (memory, disk,
//   compile) -> buffers for the results -> queue -> values of the tensors
//
// The base class's own pipeline (`SyncTensorsGraph`, reached by
// torch._C._lazy._sync_multi) works too, through the lowering context. This
// backend doesn't use it, because it has races between threads and doesn't
// support donation.
//
//===----------------------------------------------------------------------===//

#ifndef TORCH_LTC_EXECUTION_STEP_EXECUTOR_H
#define TORCH_LTC_EXECUTION_STEP_EXECUTOR_H

#include "execution/step_queue.h"
#include "graph/live_tensors.h"

#include <torch/csrc/lazy/core/lazy_graph_executor.h>

#include <string>

namespace torch_ltc {

struct ChosenProgram;
class Stopwatch;

class StepExecutor final : public torch::lazy::LazyGraphExecutor {
public:
  static StepExecutor &get();

  /// Ends the calling thread's step: computes all pending tensors of the
  /// thread.
  void markStep(bool wait);
  /// Counts a step that runs without being traced; returns its number.
  int64_t noteReplayedStep();
  /// Computes exactly these tensors (other pending lazy tensors stay pending).
  void syncTensors(c10::ArrayRef<at::Tensor> tensors, bool wait);
  /// Makes the values of `tensors` readable for `opName`. If one is pending,
  /// all pending tensors of this thread are computed with it, so that nothing
  /// is computed twice, unless `mayRunAlone` and a few cheap ops compute
  /// `tensors` from data. Returns the number of executions (0 or 1).
  int64_t materialize(c10::ArrayRef<at::Tensor> tensors,
                      const std::string &opName, bool mayRunAlone = true);
  /// Called for each traced op; cuts the graph if it exceeds option
  /// max_trace_ops.
  void noteTracedOp();
  /// Waits for all scheduled steps; throws the error of a failed one.
  void waitForAll();
  /// Number of ops that this thread has traced since its last step.
  int64_t numTracedOps() const;
  /// Number of steps that have ended in the process.
  int64_t stepNumber() const;

  // The base class's hooks.
  void
  RegisterTensor(std::shared_ptr<torch::lazy::LazyTensor::Data> data) override;
  void UnregisterTensor(torch::lazy::LazyTensor::Data *data) override;
  void SyncLiveTensorsGraph(const torch::lazy::BackendDevice *device,
                            c10::ArrayRef<std::string> devices,
                            bool wait) override;
  void MarkStep(const torch::lazy::BackendDevice &device) override;

protected:
  PostOrderData RunPostOrder(const std::vector<torch::lazy::Value> &values,
                             SyncTensorCollection *collection) override;

private:
  enum class Trigger { MarkStep, Sync, Cut };
  void run(std::vector<TensorDataPtr> tensors, Trigger trigger, bool full,
           bool wait);
  void schedule(ScheduledStep step, const Graph &graph,
                const ChosenProgram &chosen, Trigger trigger, bool full,
                const Stopwatch &stopwatch);
};

/// Adds the execution to the step log and the counters, then schedules it.
/// `scheduleSeconds`: the time that the calling thread has spent on the step.
/// For `origin` and `trigger` see StepEvent.
void logAndSchedule(ScheduledStep step, std::string origin, std::string trigger,
                    double scheduleSeconds);

} // namespace torch_ltc

#endif // TORCH_LTC_EXECUTION_STEP_EXECUTOR_H
