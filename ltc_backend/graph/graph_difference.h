//===- graph_difference.h - Why a program is new ----------------*- C++ -*-===//

#ifndef TORCH_LTC_GRAPH_GRAPH_DIFFERENCE_H
#define TORCH_LTC_GRAPH_GRAPH_DIFFERENCE_H

#include "graph/graph.h"

namespace torch_ltc {

/// A number for each node that says its op, arguments, sizes and dtypes;
/// sorted.
using NodeSignatures = std::vector<uint64_t>;
NodeSignatures signaturesOf(const GraphSnapshot &graph);

/// How many nodes of one graph have a counterpart in the other one, wherever it
/// stands.
size_t numShared(const NodeSignatures &a, const NodeSignatures &b);

/// One sentence: the first op of `next` that `previous` doesn't have, with the
/// op of the same name that `next` doesn't have any more; else what is
/// different about parameters and results.
std::string firstDifference(const GraphSnapshot &previous,
                            const GraphSnapshot &next);

} // namespace torch_ltc

#endif // TORCH_LTC_GRAPH_GRAPH_DIFFERENCE_H
