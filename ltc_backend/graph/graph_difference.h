//===- graph_difference.h - Why a program is new ----------------*- C++ -*-===//

#ifndef TORCH_LTC_GRAPH_GRAPH_DIFFERENCE_H
#define TORCH_LTC_GRAPH_GRAPH_DIFFERENCE_H

#include "graph/graph.h"

namespace torch_ltc {

/// How many nodes of `next` have a node of the same op, arguments, sizes and
/// dtypes in `previous`, wherever it stands.
size_t numSharedNodes(const GraphSnapshot &previous, const GraphSnapshot &next);

/// One sentence: the first op of `next` that `previous` doesn't have, with the
/// op of the same name that `next` doesn't have any more; else what is
/// different about parameters and results.
std::string firstDifference(const GraphSnapshot &previous,
                            const GraphSnapshot &next);

} // namespace torch_ltc

#endif // TORCH_LTC_GRAPH_GRAPH_DIFFERENCE_H
