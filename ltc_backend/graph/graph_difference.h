//===- graph_difference.h - Reason why a program is new ---------*- C++ -*-===//

#ifndef TORCH_LTC_GRAPH_GRAPH_DIFFERENCE_H
#define TORCH_LTC_GRAPH_GRAPH_DIFFERENCE_H

#include "graph/graph.h"

namespace torch_ltc {

/// A number for each node that covers its op, arguments, sizes and dtypes;
/// sorted.
using NodeSignatures = std::vector<uint64_t>;
NodeSignatures signaturesOf(const GraphSnapshot &graph);

/// Number of nodes of one graph that have a counterpart anywhere in the other
/// one.
size_t numShared(const NodeSignatures &a, const NodeSignatures &b);

/// One sentence: the first op of `next` that `previous` doesn't contain, with
/// the op of the same name that `next` no longer contains; otherwise the
/// difference in parameters and results.
std::string firstDifference(const GraphSnapshot &previous,
                            const GraphSnapshot &next);

} // namespace torch_ltc

#endif // TORCH_LTC_GRAPH_GRAPH_DIFFERENCE_H
