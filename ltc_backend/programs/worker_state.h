//===- worker_state.h - torch's settings of a step's thread -----*- C++ -*-===//

#ifndef TORCH_LTC_PROGRAMS_WORKER_STATE_H
#define TORCH_LTC_PROGRAMS_WORKER_STATE_H

#include "events/reported_warnings.h"

#include <ATen/ThreadLocalState.h>
#include <c10/core/AutogradState.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include <optional>

namespace torch_ltc {

/// Must be called by each worker thread at its start, when torch's settings are
/// those of a new thread.
void noteWorkerState();
/// Whether a worker thread has started.
bool hasWorkerState();

/// While such an object exists, the current thread has the settings that
/// `noteWorkerState` noted, and doesn't repeat warnings. A thread that runs a
/// step itself may be in a dispatch mode, autocast, or inference mode.
class WorkerStateGuard {
public:
  WorkerStateGuard();
  ~WorkerStateGuard();

private:
  /// Replacing all settings takes as long as a small op; usually `keys` and
  /// `ownGradients` suffice.
  std::optional<c10::impl::ForceDispatchKeyGuard> keys;
  std::optional<c10::AutogradState> ownGradients;
  std::optional<at::ThreadLocalStateGuard> all;
  ReportedWarningsGuard warnings;
};

} // namespace torch_ltc

#endif // TORCH_LTC_PROGRAMS_WORKER_STATE_H
