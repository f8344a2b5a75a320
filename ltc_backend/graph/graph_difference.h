//===- graph_difference.h - Reason why a program is new ---------*- C++ -*-===//

#ifndef TORCH_LTC_GRAPH_GRAPH_DIFFERENCE_H
#define TORCH_LTC_GRAPH_GRAPH_DIFFERENCE_H

#include "graph/graph.h"

namespace torch_ltc {

/// A number for each node that covers its op, arguments, sizes and dtypes;
/// sorted.
std::vector<uint64_t> nodeSignatures(const GraphSnapshot &graph);

/// The graph that shares the most nodes with `graph`, the last of equal ones;
/// null without `others`.
GraphSnapshotPtr nearestGraph(const GraphSnapshot &graph,
                              const std::vector<GraphSnapshotPtr> &others);

/// One sentence: the first op of `next` that `previous` doesn't contain, with
/// the op of the same name that `next` no longer contains; otherwise the
/// difference in parameters and results.
std::string firstDifference(const GraphSnapshot &previous,
                            const GraphSnapshot &next);

} // namespace torch_ltc

#endif // TORCH_LTC_GRAPH_GRAPH_DIFFERENCE_H
