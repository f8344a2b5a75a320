//===- pending_graph.h - The graph of pending tensors -----------*- C++ -*-===//

#ifndef TORCH_LTC_GRAPH_PENDING_GRAPH_H
#define TORCH_LTC_GRAPH_PENDING_GRAPH_H

#include "graph/graph.h"

#include <ATen/core/Tensor.h>

namespace torch_ltc {

/// The inputs of a pending graph.
struct PendingValues {
  std::vector<HostDataPtr> parameters;
  std::vector<DynamicScalar> scalars;
  /// The index of each tensor's result in the graph. Tensors that share a value
  /// are one result.
  std::vector<uint32_t> resultOfTensor;
};

/// Returns the graph that `sync_tensors(tensors)` would run. A tensor without a
/// pending graph is a parameter and a result of the graph. Throws c10::Error
/// for tensors that aren't lazy.
GraphSnapshot pendingGraph(c10::ArrayRef<at::Tensor> tensors,
                           PendingValues *pending = nullptr);

} // namespace torch_ltc

#endif // TORCH_LTC_GRAPH_PENDING_GRAPH_H
