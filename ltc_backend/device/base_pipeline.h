//===- base_pipeline.h - Support for torch::lazy's own pipeline -*- C++ -*-===//
//
// torch._C._lazy._sync_multi, and reads by torch's own code, call
// `LazyGraphExecutor::SyncTensorsGraph`, which lowers through a
// `LoweringContext` and runs a `Computation`. The two classes below implement
// these interfaces with our graphs and programs.
//
//===----------------------------------------------------------------------===//

#ifndef TORCH_LTC_DEVICE_BASE_PIPELINE_H
#define TORCH_LTC_DEVICE_BASE_PIPELINE_H

#include "programs/program.h"

#include <torch/csrc/lazy/backend/backend_interface.h>

namespace torch_ltc {

class TracedComputation final : public torch::lazy::Computation {
public:
  TracedComputation(GraphSnapshotPtr graph, Hash128 hash);

  int parameters_size() const override;
  const std::vector<torch::lazy::Shape> &parameter_shapes() const override {
    return parameterShapes;
  }
  const std::vector<std::string> &parameter_names() const override {
    return parameterNames;
  }
  const torch::lazy::Shape &result_shape() const override {
    return resultShape;
  }
  const std::string to_string() const override;

  /// Finds or creates the program.
  void compile();
  /// Schedules a run of the program, waits for the results and returns them.
  /// Raises the run's error.
  std::vector<torch::lazy::BackendDataPtr>
  execute(c10::ArrayRef<torch::lazy::BackendDataPtr> arguments) const;

  const GraphSnapshot &graph() const { return *graphPtr; }

private:
  GraphSnapshotPtr graphPtr;
  Hash128 hash;
  ProgramPtr program;
  std::vector<torch::lazy::Shape> parameterShapes;
  std::vector<std::string> parameterNames;
  torch::lazy::Shape resultShape; // of the first result
};

class TracedLoweringContext final : public torch::lazy::LoweringContext {
public:
  using LoweringContext::LoweringContext;
  size_t AddResult(const torch::lazy::Output &output) override;
  void AddParameter(const torch::lazy::Output &output, size_t index,
                    const torch::lazy::Shape &shape,
                    const std::string &name) override;
  torch::lazy::ComputationPtr Build() override;

private:
  std::vector<torch::lazy::Output> results;
};

} // namespace torch_ltc

#endif // TORCH_LTC_DEVICE_BASE_PIPELINE_H
