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

// Tensors here are values, lazy tensors without wrappers.

/// Traces a collective that whoever reads the output waits for.
at::Tensor traceCollective(const Collective &collective);

/// One that was started, with what `traceWait` needs.
struct StartedCollective {
  at::Tensor started;
  std::vector<int64_t> size;
  at::ScalarType dtype;
};
StartedCollective traceStart(const Collective &collective);
at::Tensor traceWait(const StartedCollective &collective);

// For steps that are replayed. With the trace lock held.

/// The end of the chain of collectives, computed or scheduled; a new one if
/// nothing was traced on this thread, or the last one failed.
at::Tensor scheduledOrder();
/// The Python lines of the last `count` collectives that were traced.
std::vector<LocationId> lastPlaces(size_t count);
/// As many more are about to run without being traced.
void noteReplayedCollectives(c10::ArrayRef<LocationId> places);

/// Runs what was traced up to now and waits for it, if there is a collective
/// among it: other ranks may need it for what `reader` is about to wait for.
void runTracedCollectives(const std::string &reader);
/// The same before a collective of `group` that isn't traced. What another
/// thread traced runs only if there was one of the same group: a thread with a
/// group of its own (that saves a checkpoint) doesn't meddle with a step.
void runTracedCollectives(const ProcessGroupPtr &group,
                          const std::string &reader);

} // namespace torch_ltc

#endif // TORCH_LTC_DISTRIBUTED_TRACED_COLLECTIVE_H
