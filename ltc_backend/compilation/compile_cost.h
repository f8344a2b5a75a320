//===- compile_cost.h - Expected time of a compilation ----------*- C++ -*-===//
//
// Compilation takes time for each kernel that is new to the process, and little
// for repeated parts: a program of 2,306 ops with 16 kernels takes 0.3 s, one
// of 76 ops with 16 different kernels 0.5 s. So the cost is estimated from the
// number of ops and the number of distinct nodes that no compiled graph has
// contained, and multiplied by a factor that follows the measured times of
// earlier compilations.
//
//===----------------------------------------------------------------------===//

#ifndef TORCH_LTC_COMPILATION_COMPILE_COST_H
#define TORCH_LTC_COMPILATION_COMPILE_COST_H

#include "graph/graph.h"

namespace torch_ltc {

/// Estimates how long compiling the graph takes, in seconds.
double expectedCompileSeconds(const GraphSnapshot &graph);

/// Returns a lower bound on this estimate for a graph of `ops` ops. Cheap.
double minCompileSeconds(size_t ops);

/// Records that compiling the graph took `seconds`, to correct later estimates.
void noteCompilation(const GraphSnapshot &graph, double seconds);

} // namespace torch_ltc

#endif // TORCH_LTC_COMPILATION_COMPILE_COST_H
