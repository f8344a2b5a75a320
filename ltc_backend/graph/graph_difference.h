//===- graph_difference.h - Reason why a program is new ---------*- C++ -*-===//

#ifndef TORCH_LTC_GRAPH_GRAPH_DIFFERENCE_H
#define TORCH_LTC_GRAPH_GRAPH_DIFFERENCE_H

#include "graph/graph.h"

namespace torch_ltc {

/// Returns a hash of the op, arguments, sizes and dtypes of each node, sorted.
std::vector<uint64_t> nodeSignatures(const GraphSnapshot &graph);

/// Returns the last of those `others` that share the most nodes with `graph`;
/// null if there are no `others`.
GraphSnapshotPtr nearestGraph(const GraphSnapshot &graph,
                              const std::vector<GraphSnapshotPtr> &others);

/// Returns one line: the first op of `next` that `previous` doesn't contain,
/// with the op of the same name that `next` no longer contains; otherwise the
/// difference in parameters and results.
std::string firstDifference(const GraphSnapshot &previous,
                            const GraphSnapshot &next);

} // namespace torch_ltc

#endif // TORCH_LTC_GRAPH_GRAPH_DIFFERENCE_H
