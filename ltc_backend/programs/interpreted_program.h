//===- interpreted_program.h - A graph, op by op, on the CPU ----*- C++ -*-===//
//
// Runs a graph without the compiler: each op is a call to torch's CPU kernel,
// in trace order. Ops that copy views return views, and a value is freed after
// its last reader has run, so that a run takes eager's time and memory.
//
//===----------------------------------------------------------------------===//

#ifndef TORCH_LTC_PROGRAMS_INTERPRETED_PROGRAM_H
#define TORCH_LTC_PROGRAMS_INTERPRETED_PROGRAM_H

#include "programs/cpu_call.h"
#include "programs/program.h"
#include "programs/result_memory.h"

#include <ATen/core/stack.h>

#include <atomic>
#include <mutex>

namespace torch_ltc {

/// One op with the arguments that are the same in each run.
struct PreparedCall {
  PreparedCall(const GraphSnapshot &graph, size_t position);

  const CpuCall &onCpu;
  torch::jit::Stack arguments;
  /// The arguments that differ between runs (tensors and dynamic scalars), with
  /// their indices.
  std::vector<std::pair<uint32_t, Attribute>> varying;
};

/// The values of a run so far.
struct RunValues {
  std::vector<std::vector<at::Tensor>> ofNodes;
  /// Empty unless some ops run before their turn (programs/head_start.h): for
  /// each node, whether it has run, and how often its values will still be
  /// read. Being a result of the graph counts as one more read.
  std::vector<bool> hasRun = {};
  std::vector<uint32_t> readsToCome = {};
};

struct HeadStart;
using HeadStartPtr = std::shared_ptr<HeadStart>;

class InterpretedProgram : public Program {
public:
  explicit InterpretedProgram(GraphSnapshotPtr graph);
  void run(c10::ArrayRef<void *> parameters,
           c10::ArrayRef<DynamicScalar> scalars, c10::ArrayRef<void *> outputs,
           const RunConditions &conditions) override;
  bool mayRunInCaller() const override { return !waitsForRanks; }
  const GraphSnapshot *evaluableGraph() const override { return graph.get(); }
  const GraphSnapshotPtr &sharedGraph() const { return graph; }
  bool providesMemory() const override { return true; }

  /// Returns the values of the graph's results, by node.
  std::vector<std::vector<at::Tensor>>
  evaluate(c10::ArrayRef<void *> parameters,
           c10::ArrayRef<DynamicScalar> scalars,
           const RunConditions &conditions) const;

  /// Whether the op may run before the rest of its step is traced.
  bool mayRunEarly(size_t position) const;
  HeadStartPtr beginHeadStart() const;
  /// Runs the ops at `positions`, all of which may run early, except those
  /// whose operands have no values yet. Called on the thread that runs steps.
  void runEarly(HeadStart &headStart, c10::ArrayRef<uint32_t> positions);

  /// Processor time of all runs so far in seconds, without the time of kernels'
  /// helper threads; for a small program, estimated from some of the runs.
  double seconds() const { return secondsRun.load(); }

protected:
  GraphSnapshotPtr graph;

private:
  /// Returns the arguments of an op. `prepared`: null in the first run.
  torch::jit::Stack
  argumentsOf(size_t position, const PreparedCall *prepared,
              const std::vector<std::vector<at::Tensor>> &values,
              c10::ArrayRef<DynamicScalar> scalars) const;
  /// Runs an op. Returns whether it has overwritten a parameter.
  bool call(size_t position, const PreparedCall *prepared, RunValues &values,
            c10::ArrayRef<DynamicScalar> scalars, ResultAddresses &addresses,
            LocationId location) const;
  /// Runs a scatter op in place: writes the new part into the op's first
  /// operand if no later op reads this operand and nothing else shares its
  /// memory. Returns whether the part was written.
  bool writeInPlace(size_t position, const c10::OperatorHandle &view,
                    const torch::jit::Stack &stack,
                    const RunValues &values) const;
  void prepareCalls() const;
  /// The nodes whose values are read last by the node at `position`.
  c10::ArrayRef<uint32_t> lastUses(size_t position) const;
  /// Whether no op after the one at `position` reads the values of `node`.
  bool isLastReader(size_t position, uint32_t node,
                    const RunValues &values) const;
  /// Frees the values that nothing reads after the op at `position`.
  void release(size_t position, RunValues &values) const;
  std::vector<std::vector<at::Tensor>>
  evaluate(RunValues values, c10::ArrayRef<void *> parameters,
           c10::ArrayRef<DynamicScalar> scalars, ResultAddresses &addresses,
           const RunConditions &conditions) const;
  /// Whether the node's values are available. If the node is a parameter that
  /// has been computed, stores its value in `headStart` first.
  bool provide(HeadStart &headStart, size_t position) const;
  c10::ArrayRef<ResultRef> operandsOf(size_t position) const {
    const SnapshotNode &node = graph->nodes[position];
    return c10::ArrayRef(graph->operands)
        .slice(node.firstOperand, node.numOperands);
  }

  /// Fails before an op overwrites a parameter if there is no memory for the
  /// largest value, so that results that don't depend on it can be computed.
  void checkMemory() const;

  std::unique_ptr<ResultMemory> memory;
  size_t largestBytes = 0; // of a value that isn't a view
  /// The nodes whose values a node is the last to read, concatenated from the
  /// last node to the first; and for each node, the end of its part of that
  /// list.
  std::vector<uint32_t> lastUsed, endOfLastUsed;
  /// Created for the second run: most programs of a loop with changing sizes
  /// run only once, but stay in memory.
  mutable std::vector<std::unique_ptr<PreparedCall>> calls; // null: data
  mutable std::once_flag areCallsPrepared;
  mutable std::atomic<bool> wasRun{false};
  std::atomic<uint32_t> numRuns{0};
  std::atomic<double> secondsRun{0};
};

} // namespace torch_ltc

#endif // TORCH_LTC_PROGRAMS_INTERPRETED_PROGRAM_H
