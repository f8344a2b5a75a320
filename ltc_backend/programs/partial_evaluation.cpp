//===- partial_evaluation.cpp - A failed step without its failure ---------===//

#include "programs/partial_evaluation.h"

#include "programs/worker_state.h"

#include <ATen/core/LegacyTypeDispatch.h>

using namespace torch_ltc;

namespace {

/// Evaluates a graph's nodes in order. A node that depends on a node without a
/// value has none either, for the same reason.
class Evaluation {
public:
  Evaluation(const GraphSnapshot &graph, const FailedRun &run)
      : graph(graph), run(run), values(graph.nodes.size()),
        causes(graph.nodes.size()) {}

  void evaluate() {
    for (size_t i = 0; i < graph.nodes.size(); ++i) {
      const SnapshotNode &node = graph.nodes[i];
      if (!node.record)
        read(i, node);
      else if (!(causes[i] = causeOfOperands(node)))
        compute(i);
    }
    // Prefers the program's own error, which names the command and its line.
    if (run.error && failedOps.size() == 1)
      errors[failedOps.front()] = run.error;
  }

  bool hasFailure() const { return !errors.empty(); }

  PartialResult result(ResultRef ref) const {
    if (causes[ref.position])
      return {{}, errors[*causes[ref.position]], valueBefore(ref)};
    return {copyOf(ref), nullptr, {}};
  }

private:
  /// Follows the chain of operands that the ops' results replace, from `ref` to
  /// the first operand with a value. Returns this value, after applying the
  /// chain's views and copies to it, or an undefined tensor if there is none.
  at::Tensor valueBefore(ResultRef ref) const {
    std::vector<size_t> views;
    while (causes[ref.position]) {
      const SnapshotNode &node = graph.nodes[ref.position];
      std::optional<ResultRef> replaced = replacedValue(graph, ref);
      if (!replaced)
        return {};
      if (node.numOperands == 1 && node.record->family == Family::data_movement)
        views.push_back(ref.position);
      else if (graph.shape(*replaced) != graph.shape(ref))
        return {};
      ref = *replaced;
    }
    if (views.empty())
      return copyOf(ref);
    std::vector<std::vector<at::Tensor>> known(graph.nodes.size());
    at::Tensor value = values[ref.position][ref.index];
    for (; !views.empty(); views.pop_back()) {
      const SnapshotNode &node = graph.nodes[views.back()];
      ResultRef operand = graph.operands[node.firstOperand];
      known[operand.position].resize(operand.index + 1);
      known[operand.position][operand.index] = value;
      value = interpretNode(graph, views.back(), known, run.scalars)[0];
    }
    return value.clone(at::MemoryFormat::Contiguous);
  }

  at::Tensor copyOf(ResultRef ref) const {
    const torch::lazy::Shape &shape = graph.shape(ref);
    at::Tensor copy = at::empty(shape.sizes(), hostOptions(shape));
    const at::Tensor &value = values[ref.position][ref.index];
    // Returns zeros for statistics that the op's CPU kernel leaves empty
    // although its Meta kernel gives them a size.
    if (value.numel() == 0)
      copy.zero_();
    else
      copy.copy_(value);
    return copy;
  }

  void read(size_t i, const SnapshotNode &node) {
    if (const StepErrorPtr &error = run.parameterErrors[node.parameter]) {
      causes[i] = errors.size();
      errors.push_back(error);
      return;
    }
    values[i].push_back(
        tensorAt(run.parameters[node.parameter]->data(), node.shapes[0]));
  }

  std::optional<size_t> causeOfOperands(const SnapshotNode &node) const {
    for (uint32_t i = 0; i < node.numOperands; ++i)
      if (auto cause = causes[graph.operands[node.firstOperand + i].position])
        return cause;
    return std::nullopt;
  }

  void compute(size_t i) {
    std::optional<LocationId> location;
    if (!run.locations.empty())
      location = run.locations[i];
    try {
      values[i] = interpretNode(graph, i, values, run.scalars, location);
      return;
    } catch (const RunError &error) {
      errors.push_back(run.makeError(error.kind, error.what()));
    } catch (const std::exception &error) {
      errors.push_back(run.makeError(ErrorKind::Runtime, error.what()));
    }
    causes[i] = errors.size() - 1;
    failedOps.push_back(*causes[i]);
  }

  const GraphSnapshot &graph;
  const FailedRun &run;
  std::vector<std::vector<at::Tensor>> values;
  std::vector<StepErrorPtr> errors;
  /// For each node without a value, the index in `errors` of the reason.
  std::vector<std::optional<size_t>> causes;
  /// The indices in `errors` of the errors that ops themselves raised.
  std::vector<size_t> failedOps;
};

} // namespace

std::vector<PartialResult> torch_ltc::evaluateAround(const Program &program,
                                                     const FailedRun &run) {
  const GraphSnapshot *graph = program.evaluableGraph();
  // Collectives can't run again, because other processes don't repeat theirs.
  if (!graph || program.numCollectives || program.waitsForRanks)
    return {};
  WorkerStateGuard state;
  at::AutoDispatchBelowAutograd noAutograd;
  Evaluation evaluation(*graph, run);
  evaluation.evaluate();
  std::vector<PartialResult> results;
  if (evaluation.hasFailure())
    for (ResultRef result : graph->results)
      results.push_back(evaluation.result(result));
  return results;
}
