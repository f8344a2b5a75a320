//===- worker_state.cpp - torch's settings of a step's thread -------------===//

#include "programs/worker_state.h"

#include <ATen/FuncTorchTLS.h>
#include <ATen/PythonTorchFunctionTLS.h>
#include <ATen/SavedTensorHooks.h>
#include <c10/core/impl/PythonDispatcherTLS.h>
#include <c10/core/impl/TorchDispatchModeTLS.h>

#include <atomic>

using namespace torch_ltc;

namespace {

thread_local bool isWorker = false;

/// torch's thread-local settings in a new thread.
struct WorkerState {
  at::ThreadLocalState all;
  c10::impl::LocalDispatchKeySet keys = c10::impl::tls_local_dispatch_key_set();
  c10::AutogradState gradients = c10::AutogradState::get_tls_state();
};

/// Null until the worker has started; until then no step runs in the thread
/// that scheduled it.
std::atomic<const WorkerState *> workerState{nullptr};

} // namespace

void torch_ltc::noteWorkerState() {
  isWorker = true;
  static const WorkerState *const first = new WorkerState;
  workerState = first;
}

/// Whether this thread has settings, other than dispatch keys and gradient
/// modes, that affect Python code (for example, a custom op's kernel) or
/// torch's kernels.
static bool hasOtherSettings() {
  return c10::impl::dispatch_mode_enabled() ||
         c10::impl::PythonDispatcherTLS::get_state() ||
         at::impl::torch_function_mode_enabled() ||
         at::functorch::functorchTLSAccessor() ||
         at::SavedTensorDefaultHooks::get_hooks();
}

bool torch_ltc::hasWorkerState() { return workerState; }

WorkerStateGuard::WorkerStateGuard() {
  const WorkerState *state = workerState;
  if (isWorker || !state)
    return;
  if (hasOtherSettings()) {
    all.emplace(state->all);
    return;
  }
  keys.emplace(state->keys);
  ownGradients = c10::AutogradState::get_tls_state();
  c10::AutogradState::set_tls_state(state->gradients);
}

WorkerStateGuard::~WorkerStateGuard() {
  if (ownGradients)
    c10::AutogradState::set_tls_state(*ownGradients);
}
