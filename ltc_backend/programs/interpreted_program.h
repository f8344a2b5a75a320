//===- interpreted_program.h - A graph, op by op, on the CPU ----*- C++ -*-===//
//
// The tier that needs no compiler: each op of the graph is a call of torch's
// CPU kernel, in the order of the trace. Copies of views are views, and a value
// goes when its last reader has run, so that a run takes the time and memory
// that eager takes.
//
//===----------------------------------------------------------------------===//

#ifndef TORCH_LTC_PROGRAMS_INTERPRETED_PROGRAM_H
#define TORCH_LTC_PROGRAMS_INTERPRETED_PROGRAM_H

#include "programs/program.h"

#include <ATen/core/stack.h>

#include <atomic>

namespace torch_ltc {

/// One op with the arguments that are the same in each run.
struct PreparedCall {
  PreparedCall(const GraphSnapshot &graph, size_t position);

  c10::OperatorHandle op;
  torch::jit::Stack arguments;
  /// Tensors and dynamic scalars, by the argument's index.
  std::vector<std::pair<uint32_t, Attribute>> varying;
  /// Nodes whose values nobody reads afterwards.
  std::vector<uint32_t> lastUses;
  bool readsMemory = false;
  /// The kernel takes contiguous operands for granted: in eager PyTorch what
  /// calls it makes them so.
  bool wantsContiguous = false;
};

class InterpretedProgram : public Program {
public:
  explicit InterpretedProgram(GraphSnapshotPtr graph);
  void run(c10::ArrayRef<void *> parameters,
           c10::ArrayRef<DynamicScalar> scalars, c10::ArrayRef<void *> outputs,
           const RunConditions &conditions) override;
  bool mayRunInCaller() const override { return true; }

  /// The values of the graph's results, by node.
  std::vector<std::vector<at::Tensor>>
  evaluate(c10::ArrayRef<void *> parameters,
           c10::ArrayRef<DynamicScalar> scalars,
           const RunConditions &conditions) const;

protected:
  /// That all runs took so far.
  double seconds() const { return secondsRun.load(); }

private:
  void call(size_t position, std::vector<std::vector<at::Tensor>> &values,
            c10::ArrayRef<DynamicScalar> scalars, LocationId location) const;
  GraphSnapshotPtr graph;
  std::vector<std::unique_ptr<PreparedCall>> calls; // null: data
  std::atomic<double> secondsRun{0};
};

} // namespace torch_ltc

#endif // TORCH_LTC_PROGRAMS_INTERPRETED_PROGRAM_H
