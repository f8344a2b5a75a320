//===- donation.h - Parameters that a step may overwrite --------*- C++ -*-===//
//
// After `p.sub_(lr * g)` the old value of p can't be read any more: only the
// graph that is about to run refers to it, and its buffer may be reused for the
// new value. A parameter is donatable if
//
//   * all references to its data come from the graph's own nodes, and
//   * all references to these nodes, and to every other node of the graph, come
//     from the graph and from the tensors whose values it computes. (A pending
//     graph of another thread would still read the buffer.)
//
//===----------------------------------------------------------------------===//

#ifndef TORCH_LTC_GRAPH_DONATION_H
#define TORCH_LTC_GRAPH_DONATION_H

#include "graph/graph.h"

#include <vector>

namespace torch_ltc {

/// Returns for each parameter of `graph` whether it is donatable. `roots` are
/// the values from which the graph was built; each is held once by `roots` and
/// once by a tensor.
std::vector<bool> findDonatable(const Graph &graph,
                                c10::ArrayRef<torch::lazy::Value> roots);

} // namespace torch_ltc

#endif // TORCH_LTC_GRAPH_DONATION_H
