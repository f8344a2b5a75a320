//===- effects.h - Pending collectives --------------------------*- C++ -*-===//
//
// Collectives have effects other than computing values, so each must run
// exactly once. The collectives that a thread traces form a chain: the first
// operand of each is the one before it (distributed/collective_ops.h). Until
// they are scheduled, the end of the chain is a pending tensor of the thread's
// set.
//
//===----------------------------------------------------------------------===//

#ifndef TORCH_LTC_GRAPH_EFFECTS_H
#define TORCH_LTC_GRAPH_EFFECTS_H

#include "graph/live_tensors.h"

namespace torch_ltc {

using LiveSets = std::vector<std::shared_ptr<LiveSet>>;

/// `tensors` are about to be computed. If their graph has pending effects, adds
/// the other tensors of the traces with these effects, and the tensors of other
/// threads that depend on the effects: no later graph may contain the effects'
/// nodes. Returns the sets of the threads that traced the effects.
LiveSets addTracesOfEffects(std::vector<TensorDataPtr> &tensors);

/// Puts the ends of chains of collectives first, so that all collectives start
/// before the step waits for one, then the other tensors in order of creation.
/// Tensors that were written again have moved to the end of the list; a stable
/// order of the outputs keeps the graph's hash the same from step to step.
void sortForGraph(std::vector<TensorDataPtr> &tensors);

} // namespace torch_ltc

#endif // TORCH_LTC_GRAPH_EFFECTS_H
