//===- graph_difference.h - Reason why a program is new ---------*- C++ -*-===//

#ifndef TORCH_LTC_GRAPH_GRAPH_DIFFERENCE_H
#define TORCH_LTC_GRAPH_GRAPH_DIFFERENCE_H

#include "graph/graph.h"

namespace torch_ltc {

/// Returns for each node a hash of its op, arguments, sizes and dtypes. The
/// hashes are sorted.
std::vector<uint64_t> nodeSignatures(const GraphSnapshot &graph);

/// Returns the last of those `others` that share the most nodes with `graph`;
/// null if there are no `others`.
GraphSnapshotPtr nearestGraph(const GraphSnapshot &graph,
                              const std::vector<GraphSnapshotPtr> &others);

/// Returns one line: the first op of `next` whose arguments or sizes differ
/// from those of an op of the same name in `previous`; if there is none, the
/// first new op, the first removed op, or the first difference in results or
/// parameters.
std::string firstDifference(const GraphSnapshot &previous,
                            const GraphSnapshot &next);

} // namespace torch_ltc

#endif // TORCH_LTC_GRAPH_GRAPH_DIFFERENCE_H
