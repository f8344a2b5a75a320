//===- graph.cpp - The graph below a set of results -----------------------===//

#include "graph/graph.h"

#include <mutex>
#include <unordered_map>

using namespace torch_ltc;
using torch::lazy::Output;

namespace torch_ltc {

/// Builds a graph by a walk in post-order. The walk marks nodes and data with
/// its number instead of maintaining a map, so walks of several threads are
/// serialized. A walk takes about 30 ns per node.
class PostOrder {
public:
  explicit PostOrder(Graph &graph)
      : graph(graph), lock(mutex()), walk(++walkCounter()) {}

  void visit(const GraphNode *root) {
    if (root->walkNumber == walk)
      return;
    stack.push_back({root, 0});
    while (!stack.empty()) {
      auto &[node, next] = stack.back();
      if (node->walkNumber == walk) { // reached twice before it was finished
        stack.pop_back();
        continue;
      }
      if (next < node->numOperands()) {
        const GraphNode *operand = asGraphNode(node->operandNode(next++).get());
        if (operand->walkNumber != walk)
          stack.push_back({operand, 0});
        continue;
      }
      const GraphNode *finished = node;
      stack.pop_back();
      finish(finished);
    }
  }

  void addRoot(const Output &root) {
    ResultRef ref{asGraphNode(root.node)->walkPosition, uint32_t(root.index)};
    ++graph.uses[ref.position];
    hash.add(uint64_t(ref.position) << 32 | ref.index);
    // Tensors that share a value (clone, detach) are one result.
    uint32_t &known = resultAt[uint64_t(ref.position) << 16 | ref.index];
    if (!known) {
      graph.results.push_back(ref);
      known = uint32_t(graph.results.size());
    }
    graph.resultOfRoot.push_back(known - 1);
  }

  Hash128 finishHash() const { return hash.finish(); }

  /// Repeats the walk for the data only; see `renewGraph`.
  bool renewData(c10::ArrayRef<DataUse> uses) {
    graph.parameters.assign(graph.nodesOfParameter.size(), nullptr);
    for (const DataUse &use : uses) {
      const GraphNode *node =
          asGraphNode(use.op->operandNode(use.operand).get());
      if (!use.isFirst) {
        if (graph.nodes[use.position] != node)
          return false;
        continue;
      }
      if (node->walkNumber == walk)
        return false;
      node->walkNumber = walk;
      graph.nodes[use.position] = node;
      const HostDataPtr &data = static_cast<const DataNode *>(node)->data();
      HostDataPtr &parameter = graph.parameters[use.parameter];
      if ((data->walkNumber == walk) != (parameter != nullptr) ||
          (parameter && parameter != data))
        return false;
      data->walkNumber = walk;
      parameter = data;
    }
    return true;
  }

private:
  static std::mutex &mutex() {
    static auto *instance = new std::mutex;
    return *instance;
  }
  static uint64_t &walkCounter() {
    static uint64_t counter = 0;
    return counter;
  }

  void finish(const GraphNode *node) {
    node->walkNumber = walk;
    node->walkPosition = uint32_t(graph.nodes.size());
    graph.nodes.push_back(node);
    graph.uses.push_back(0);
    graph.firstOperand.push_back(uint32_t(graph.operands.size()));
    if (node->isData())
      finishData(static_cast<const DataNode &>(*node));
    else
      finishOp(static_cast<const OpNode &>(*node));
  }

  void finishData(const DataNode &node) {
    const HostData &data = *node.data();
    if (data.walkNumber != walk) {
      data.walkNumber = walk;
      data.walkIndex = uint32_t(graph.parameters.size());
      graph.parameters.push_back(node.data());
      graph.nodesOfParameter.push_back(0);
    }
    ++graph.nodesOfParameter[data.walkIndex];
    hash.add(node.dagHashValue());
    hash.add(data.walkIndex);
  }

  void finishOp(const OpNode &node) {
    ++graph.numOps;
    hash.add(node.signature());
    for (size_t i = 0; i < node.numOperands(); ++i) {
      const GraphNode *operand = asGraphNode(node.operandNode(i).get());
      ResultRef ref{operand->walkPosition, uint32_t(node.operandIndex(i))};
      graph.operands.push_back(ref);
      ++graph.uses[ref.position];
      hash.add(uint64_t(ref.position) << 32 | ref.index);
    }
    for (const DynamicScalar &scalar : node.scalars())
      graph.scalars.push_back(scalar);
  }

  Graph &graph;
  std::lock_guard<std::mutex> lock;
  uint64_t walk;
  std::vector<std::pair<const GraphNode *, size_t>> stack;
  std::unordered_map<uint64_t, uint32_t> resultAt;
  HashState hash{4};
};

} // namespace torch_ltc

Graph torch_ltc::buildGraph(c10::ArrayRef<Output> roots) {
  Graph graph;
  PostOrder order(graph);
  for (const Output &root : roots)
    order.visit(asGraphNode(root.node));
  for (const Output &root : roots)
    order.addRoot(root);
  graph.hash = order.finishHash();
  return graph;
}

std::vector<DataUse> torch_ltc::dataUses(const Graph &graph) {
  std::unordered_map<const HostData *, uint32_t> parameterOf;
  for (size_t i = 0; i < graph.parameters.size(); ++i)
    parameterOf.emplace(graph.parameters[i].get(), uint32_t(i));
  std::vector<bool> isKnown(graph.nodes.size(), false);
  std::vector<DataUse> uses;
  for (size_t i = 0; i < graph.nodes.size(); ++i)
    for (size_t k = 0; k < graph.nodes[i]->numOperands(); ++k) {
      uint32_t position = graph.operands[graph.firstOperand[i] + k].position;
      const GraphNode *operand = graph.nodes[position];
      if (!operand->isData())
        continue;
      const auto &data = static_cast<const DataNode &>(*operand);
      uses.push_back({.op = graph.nodes[i],
                      .operand = uint32_t(k),
                      .position = position,
                      .parameter = parameterOf.at(data.data().get()),
                      .isFirst = !isKnown[position]});
      isKnown[position] = true;
    }
  return uses;
}

bool torch_ltc::renewGraph(Graph &graph, c10::ArrayRef<DataUse> uses) {
  if (!PostOrder(graph).renewData(uses))
    return false;
  graph.scalars.clear();
  for (const GraphNode *node : graph.nodes)
    if (!node->isData())
      for (const DynamicScalar &scalar :
           static_cast<const OpNode *>(node)->scalars())
        graph.scalars.push_back(scalar);
  return true;
}

std::optional<ResultRef> torch_ltc::replacedValue(const GraphSnapshot &graph,
                                                  ResultRef result) {
  const SnapshotNode &node = graph.nodes[result.position];
  if (!node.record || node.numOperands == 0 || node.record->updates.empty())
    return std::nullopt;
  const auto &updates = node.record->updates;
  size_t operand = updates[std::min<size_t>(result.index, updates.size() - 1)];
  return graph.operands[node.firstOperand + operand];
}

std::optional<size_t> torch_ltc::updatedParameter(const GraphSnapshot &graph,
                                                  ResultRef result) {
  const torch::lazy::Shape &shape = graph.shape(result);
  for (;;) {
    const SnapshotNode &node = graph.nodes[result.position];
    if (graph.shape(result) != shape)
      return std::nullopt;
    if (!node.record)
      return node.parameter;
    std::optional<ResultRef> replaced = replacedValue(graph, result);
    if (!replaced)
      return std::nullopt;
    result = *replaced;
  }
}

GraphSnapshot torch_ltc::takeSnapshot(const Graph &graph, std::string name,
                                      const std::vector<bool> &donatable) {
  GraphSnapshot snapshot;
  snapshot.name = std::move(name);
  snapshot.operands = graph.operands;
  snapshot.results = graph.results;
  snapshot.numOps = graph.numOps;
  std::unordered_map<const HostData *, uint32_t> parameterOf;
  for (size_t i = 0; i < graph.parameters.size(); ++i) {
    const HostData &data = *graph.parameters[i];
    parameterOf.emplace(&data, uint32_t(i));
    snapshot.parameters.push_back(
        {data.shape(), data.name(), donatable[i], data.sizeMarks()});
  }
  snapshot.nodes.reserve(graph.nodes.size());
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const GraphNode *node = graph.nodes[i];
    SnapshotNode &copy = snapshot.nodes.emplace_back();
    copy.firstOperand = graph.firstOperand[i];
    copy.numOperands = uint32_t(node->numOperands());
    copy.shapes = node->shapes().vec();
    if (node->isData()) {
      const auto &data = static_cast<const DataNode &>(*node);
      copy.parameter = parameterOf.at(data.data().get());
    } else {
      const auto &op = static_cast<const OpNode &>(*node);
      copy.record = &op.record();
      copy.attributes = op.attributes();
      copy.firstScalar = uint32_t(snapshot.scalarIsFloat.size());
      for (const DynamicScalar &scalar : op.scalars())
        snapshot.scalarIsFloat.push_back(scalar.isFloat);
      copy.location = op.location();
      copy.modulePath = op.modulePath();
    }
  }
  return snapshot;
}
