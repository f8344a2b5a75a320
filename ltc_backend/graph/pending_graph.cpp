//===- pending_graph.cpp - The graph of pending tensors -------------------===//

#include "graph/pending_graph.h"

#include "graph/live_tensors.h"

using namespace torch_ltc;

GraphSnapshot torch_ltc::pendingGraph(c10::ArrayRef<at::Tensor> tensors,
                                      PendingValues *pending) {
  std::vector<torch::lazy::Value> values;
  std::vector<torch::lazy::Output> outputs;
  for (const at::Tensor &tensor : tensors) {
    TensorDataPtr data = tensorDataOf(tensor);
    TORCH_CHECK(data, "Only lazy tensors have a graph, but got one on '",
                tensor.device(), "'.");
    values.push_back(data->value());
    outputs.emplace_back(values.back().node.get(), values.back().index);
  }
  Graph graph = buildGraph(outputs);
  GraphSnapshot snapshot =
      takeSnapshot(graph, graph.hash.text(),
                   std::vector<bool>(graph.parameters.size(), false));
  if (pending)
    *pending = {std::move(graph.parameters), std::move(graph.scalars),
                std::move(graph.resultOfRoot)};
  return snapshot;
}
