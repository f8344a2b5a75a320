//===- effects.cpp - Pending collectives ----------------------------------===//

#include "graph/effects.h"

#include "ir/node.h"

#include <algorithm>

using namespace torch_ltc;
using torch::lazy::Value;

void LiveSet::setEffects(int64_t chain, const TensorDataPtr &tensor) {
  std::lock_guard<TraceLock> lock(traceLock);
  chainNumber = chain;
  endOfChain = tensor.get();
}

bool LiveSet::hasPendingEffects() {
  std::lock_guard<TraceLock> lock(traceLock);
  return std::any_of(waits.begin(), waits.end(),
                     [](const auto &wait) { return !wait.expired(); }) ||
         (endOfChain && endOfChain->isPending());
}

void LiveSet::noteWait(const torch::lazy::NodePtr &wait) {
  std::lock_guard<TraceLock> lock(traceLock);
  std::erase_if(waits, [](const auto &wait) { return wait.expired(); });
  waits.push_back(wait);
}

void LiveSet::noteEffectsScheduled() {
  std::lock_guard<TraceLock> lock(traceLock);
  waits.clear();
}

LiveSet::Nodes LiveSet::effectNodes() {
  Nodes found;
  std::lock_guard<TraceLock> lock(traceLock);
  for (const std::weak_ptr<torch::lazy::Node> &weak : waits)
    if (torch::lazy::NodePtr wait = weak.lock())
      found.insert(wait.get());
  if (!endOfChain)
    return found;
  const torch::lazy::Node *node = endOfChain->value().node.get();
  while (!asGraphNode(node)->isData()) {
    found.insert(node);
    node = asGraphNode(node)->operandNode(0).get();
  }
  return found;
}

/// Whether the graph of `value` has one of the nodes `wanted`. Adds the nodes
/// that it visits to `visited`, and skips those that are there.
static bool dependsOn(const Value &value, const LiveSet::Nodes &wanted,
                      LiveSet::Nodes &visited) {
  std::vector<const torch::lazy::Node *> stack = {value.node.get()};
  while (!stack.empty()) {
    const torch::lazy::Node *node = stack.back();
    stack.pop_back();
    if (wanted.count(node))
      return true;
    if (!visited.insert(node).second)
      continue;
    const GraphNode *graphNode = asGraphNode(node);
    for (size_t i = 0; i < graphNode->numOperands(); ++i)
      stack.push_back(graphNode->operandNode(i).get());
  }
  return false;
}

static bool dependOn(const std::vector<TensorDataPtr> &tensors,
                     const LiveSet::Nodes &wanted) {
  LiveSet::Nodes visited;
  return std::any_of(tensors.begin(), tensors.end(),
                     [&](const TensorDataPtr &tensor) {
                       return dependsOn(tensor->value(), wanted, visited);
                     });
}

void LiveSet::collectDependents(const Nodes &nodes,
                                std::vector<TensorDataPtr> &result) {
  std::vector<TensorDataPtr> candidates;
  collect(candidates);
  Nodes visited;
  for (TensorDataPtr &tensor : candidates)
    if (dependsOn(tensor->value(), nodes, visited)) {
      result.push_back(std::move(tensor));
      visited.clear(); // some of these nodes may depend on an effect
    }
}

namespace {

/// The sets of all threads, also of ended ones, that have pending effects.
LiveSets setsWithEffects() {
  LiveSets sets = LiveSet::all();
  std::erase_if(sets,
                [](const auto &set) { return !set->hasPendingEffects(); });
  return sets;
}

/// Adds the trace of the effects of `set`, whose nodes are `nodes`.
void addTrace(const std::shared_ptr<LiveSet> &set, const LiveSet::Nodes &nodes,
              std::vector<TensorDataPtr> &tensors) {
  std::unordered_set<const TensorData *> known;
  for (const TensorDataPtr &tensor : tensors)
    known.insert(tensor.get());
  std::vector<TensorDataPtr> others = set->pending();
  for (const std::shared_ptr<LiveSet> &other : LiveSet::all())
    if (other != set)
      other->collectDependents(nodes, others);
  for (TensorDataPtr &tensor : others)
    if (known.insert(tensor.get()).second)
      tensors.push_back(std::move(tensor));
}

} // namespace

LiveSets torch_ltc::addTracesOfEffects(std::vector<TensorDataPtr> &tensors) {
  std::lock_guard<TraceLock> lock(traceLock);
  LiveSets pending = setsWithEffects(), added;
  size_t size = tensors.size();
  // Tensors of one trace may depend on the effects of the next one.
  for (bool isDone = pending.empty(); !isDone;) {
    isDone = true;
    for (std::shared_ptr<LiveSet> &set : pending) {
      if (!set)
        continue;
      LiveSet::Nodes nodes = set->effectNodes();
      if (!dependOn(tensors, nodes))
        continue;
      addTrace(set, nodes, tensors);
      added.push_back(std::move(set));
      isDone = false;
    }
  }
  if (tensors.size() > size)
    sortForGraph(tensors);
  return added;
}

void torch_ltc::sortForGraph(std::vector<TensorDataPtr> &tensors) {
  auto age = [](const TensorDataPtr &tensor) {
    return std::pair(!tensor->traceSet()->isEndOfChain(tensor),
                     tensor->unique_id);
  };
  std::sort(tensors.begin(), tensors.end(),
            [&](const TensorDataPtr &a, const TensorDataPtr &b) {
              return age(a) < age(b);
            });
}
