//===- graph_difference.cpp - Reason why a program is new -----------------===//

#include "graph/graph_difference.h"

#include <algorithm>
#include <unordered_map>

using namespace torch_ltc;

namespace {

/// A hash of a node's computation, independent of the nodes that it reads.
Hash128 signature(const SnapshotNode &node) {
  HashState state(7);
  if (node.record)
    state.add(node.attributes->hash);
  for (const torch::lazy::Shape &shape : node.shapes) {
    state.add(uint64_t(shape.scalar_type()) << 8 | uint64_t(shape.dim()));
    for (int64_t size : shape.sizes())
      state.add(uint64_t(size));
  }
  return state.finish();
}

using Signatures = std::unordered_map<Hash128, int, Hash128Hasher>;

Signatures countSignatures(const GraphSnapshot &graph) {
  Signatures result;
  for (const SnapshotNode &node : graph.nodes)
    ++result[signature(node)];
  return result;
}

/// Positions of the ops of `graph` that `others` doesn't contain.
std::vector<size_t> opsMissingIn(Signatures others,
                                 const GraphSnapshot &graph) {
  std::vector<size_t> result;
  for (size_t i = 0; i < graph.nodes.size(); ++i)
    if (graph.nodes[i].record && --others[signature(graph.nodes[i])] < 0)
      result.push_back(i);
  return result;
}

std::string describeOps(const GraphSnapshot &previous,
                        const GraphSnapshot &next) {
  std::vector<size_t> added = opsMissingIn(countSignatures(previous), next);
  std::vector<size_t> gone = opsMissingIn(countSignatures(next), previous);
  // A changed op is more informative than an added or removed one.
  for (size_t position : added)
    for (size_t old : gone)
      if (next.nodes[position].record == previous.nodes[old].record)
        return nodeText(next, position) + ", was " + nodeText(previous, old);
  if (!added.empty())
    return "new: " + nodeText(next, added[0]);
  if (!gone.empty())
    return "gone: " + nodeText(previous, gone[0]);
  return "";
}

/// Number of nodes that two graphs have in common. `a` and `b` are their sorted
/// signatures.
size_t numShared(const std::vector<uint64_t> &a,
                 const std::vector<uint64_t> &b) {
  size_t shared = 0;
  for (auto left = a.begin(), right = b.begin();
       left != a.end() && right != b.end();) {
    shared += *left == *right;
    const bool isLess = *left < *right, isGreater = *right < *left;
    left += !isGreater;
    right += !isLess;
  }
  return shared;
}

} // namespace

std::vector<uint64_t> torch_ltc::nodeSignatures(const GraphSnapshot &graph) {
  std::vector<uint64_t> result;
  result.reserve(graph.nodes.size());
  for (const SnapshotNode &node : graph.nodes)
    result.push_back(signature(node).low);
  std::ranges::sort(result);
  return result;
}

GraphSnapshotPtr
torch_ltc::nearestGraph(const GraphSnapshot &graph,
                        const std::vector<GraphSnapshotPtr> &others) {
  const std::vector<uint64_t> signatures = nodeSignatures(graph);
  GraphSnapshotPtr nearest;
  size_t best = 0;
  for (const GraphSnapshotPtr &other : others) {
    size_t shared = numShared(nodeSignatures(*other), signatures);
    if (shared >= best) {
      best = shared;
      nearest = other;
    }
  }
  return nearest;
}

std::string torch_ltc::firstDifference(const GraphSnapshot &previous,
                                       const GraphSnapshot &next) {
  std::string ops = describeOps(previous, next);
  if (!ops.empty())
    return ops;
  if (previous.results.size() != next.results.size())
    return "other tensors are alive at the end of the step: " +
           std::to_string(next.results.size()) + " results, were " +
           std::to_string(previous.results.size());
  if (previous.parameters.size() != next.parameters.size())
    return std::to_string(next.parameters.size()) +
           " tensors in memory are read, were " +
           std::to_string(previous.parameters.size());
  for (size_t i = 0; i < next.parameters.size(); ++i)
    if (previous.parameters[i].donatable != next.parameters[i].donatable)
      return "parameter " + std::to_string(i) + " " + next.parameters[i].name +
             (next.parameters[i].donatable ? " is no longer" : " is still") +
             " needed after the step";
  return "the same ops have other operands, or options changed";
}
