//===- traced_collective.h - Collectives in the trace -----------*- C++ -*-===//

#ifndef TORCH_LTC_DISTRIBUTED_TRACED_COLLECTIVE_H
#define TORCH_LTC_DISTRIBUTED_TRACED_COLLECTIVE_H

#include "distributed/groups.h"
#include "source/source_location.h"

#include <ATen/core/Tensor.h>

#include <chrono>
#include <string>
#include <vector>

namespace torch_ltc {

/// A collective in the form that distributed/backend_call.h describes.
struct Collective {
  std::string kind;
  ProcessGroupPtr group;
  std::vector<int64_t> numbers;
  at::Tensor input; // with its functional wrapper
  std::vector<int64_t> size;
};

// The functions below return values: lazy tensors without wrappers.

/// Traces a collective; readers of the output wait for it.
at::Tensor traceCollective(const Collective &collective);

/// A collective that was started, with the data that `traceWait` needs.
struct StartedCollective {
  at::Tensor started;
  std::vector<int64_t> size;
  at::ScalarType dtype;
};
/// Traces the start of a collective.
StartedCollective traceStart(const Collective &collective);
/// Traces the wait for a collective; returns its output.
at::Tensor traceWait(const StartedCollective &collective);

// Functions for steps that are replayed. The caller holds the trace lock.

/// Returns the tensor at the end of the calling thread's chain of collectives,
/// after scheduling its computation if it is pending. If the chain has failed,
/// raises its error once; after that, begins the chain again.
at::Tensor scheduledOrder();
/// The Python lines of the last `count` collectives that were traced.
std::vector<LocationId> lastPlaces(size_t count);
/// Records the Python lines of collectives that are about to run without being
/// traced.
void noteReplayedCollectives(c10::ArrayRef<LocationId> places);

/// Runs the ops that the calling thread has traced so far and waits for them,
/// if they include a collective: other ranks may need it to reach the event
/// that `reader` is about to wait for. If the thread has traced no collective
/// at all, does so for all threads.
void runTracedCollectives(const std::string &reader);
/// Runs the ops that the calling thread has traced so far. Throws if they
/// haven't finished after `timeout`.
void waitForTracedCollectives(std::chrono::milliseconds timeout);
/// Like `runTracedCollectives`, but for all threads.
void runAllTracedCollectives(const std::string &reader);
/// To be called before `reader`, an untraced collective of `group`. Runs
/// another thread's ops only if that thread has traced a collective of `group`,
/// so that a thread with a separate group (to save a checkpoint, for example)
/// doesn't cut the other thread's step.
void runTracedCollectives(const ProcessGroupPtr &group,
                          const std::string &reader);

/// Runs the pending collectives, and the traces that they belong to, of threads
/// that have traced no op since the last call (collective_watchdog.h), which
/// was `pause` ago. Doesn't wait for them; the readers of their results raise
/// their errors. Returns whether other collectives are still pending.
bool runPausedCollectives(std::chrono::milliseconds pause);

} // namespace torch_ltc

#endif // TORCH_LTC_DISTRIBUTED_TRACED_COLLECTIVE_H
