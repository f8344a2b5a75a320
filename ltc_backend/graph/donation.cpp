//===- donation.cpp - Parameters that a step may overwrite ----------------===//

#include "graph/donation.h"

using namespace torch_ltc;

namespace {

/// Sets `referenced` for each node with references from outside the graph.
/// Returns false if one of these nodes is an op.
bool findOutsideReferences(const Graph &graph,
                           c10::ArrayRef<torch::lazy::Value> roots,
                           std::vector<bool> &referenced) {
  // `roots` holds a reference to each root, and so does the root's tensor.
  std::vector<uint32_t> expected = graph.uses;
  for (uint32_t result : graph.resultOfRoot)
    ++expected[graph.results[result].position];
  bool onlyData = true;
  auto check = [&](const torch::lazy::NodePtr &node, uint32_t position) {
    if (uint32_t(node.use_count()) == expected[position])
      return;
    referenced[position] = true;
    onlyData &= asGraphNode(node.get())->isData();
  };
  for (size_t i = 0; i < graph.nodes.size(); ++i)
    for (size_t k = 0; k < graph.nodes[i]->numOperands(); ++k)
      check(graph.nodes[i]->operandNode(k),
            graph.operands[graph.firstOperand[i] + k].position);
  for (size_t i = 0; i < roots.size(); ++i)
    check(roots[i].node, graph.results[graph.resultOfRoot[i]].position);
  return onlyData;
}

} // namespace

std::vector<bool>
torch_ltc::findDonatable(const Graph &graph,
                         c10::ArrayRef<torch::lazy::Value> roots) {
  std::vector<bool> donatable(graph.parameters.size(), false);
  std::vector<bool> referenced(graph.nodes.size(), false);
  if (!findOutsideReferences(graph, roots, referenced))
    return donatable;
  for (size_t i = 0; i < graph.parameters.size(); ++i) {
    const HostDataPtr &data = graph.parameters[i];
    // The graph's list and the nodes must be the data's only holders.
    donatable[i] = !data->sharesBuffer() &&
                   uint32_t(data.use_count()) == graph.nodesOfParameter[i] + 1;
  }
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    if (!graph.nodes[i]->isData() || !referenced[i])
      continue;
    const auto &node = static_cast<const DataNode &>(*graph.nodes[i]);
    for (size_t p = 0; p < graph.parameters.size(); ++p)
      if (graph.parameters[p] == node.data())
        donatable[p] = false;
  }
  return donatable;
}
