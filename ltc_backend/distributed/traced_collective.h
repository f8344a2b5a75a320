//===- traced_collective.h - Collectives in the trace -----------*- C++ -*-===//

#ifndef TORCH_LTC_DISTRIBUTED_TRACED_COLLECTIVE_H
#define TORCH_LTC_DISTRIBUTED_TRACED_COLLECTIVE_H

#include "distributed/groups.h"
#include "source/source_location.h"

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

namespace torch_ltc {

/// See distributed/backend_call.h.
struct Collective {
  std::string kind;
  ProcessGroupPtr group;
  std::vector<int64_t> numbers;
  at::Tensor input; // as users hold it
  std::vector<int64_t> size;
};

// Tensors here are values: lazy tensors without wrappers.

/// Traces a collective; readers of the output wait for it.
at::Tensor traceCollective(const Collective &collective);

/// A collective that was started, with the data that `traceWait` needs.
struct StartedCollective {
  at::Tensor started;
  std::vector<int64_t> size;
  at::ScalarType dtype;
};
StartedCollective traceStart(const Collective &collective);
at::Tensor traceWait(const StartedCollective &collective);

// Functions for steps that are replayed. The caller holds the trace lock.

/// The end of the chain of collectives, computed or scheduled; a new one if
/// nothing was traced on this thread, or the last one failed.
at::Tensor scheduledOrder();
/// The Python lines of the last `count` collectives that were traced.
std::vector<LocationId> lastPlaces(size_t count);
/// Records collectives that are about to run without being traced, by their
/// lines.
void noteReplayedCollectives(c10::ArrayRef<LocationId> places);

/// Runs the ops traced so far and waits for them, if they include a collective:
/// other ranks may need it for the event that `reader` is about to wait for.
void runTracedCollectives(const std::string &reader);
/// The same before an untraced collective of `group`. Ops traced by another
/// thread only run if they include a collective of the same group: a thread
/// with its own group (that saves a checkpoint) doesn't affect a step.
void runTracedCollectives(const ProcessGroupPtr &group,
                          const std::string &reader);

} // namespace torch_ltc

#endif // TORCH_LTC_DISTRIBUTED_TRACED_COLLECTIVE_H
