//===- initialize.cpp - Entry point of the library ------------------------===//

#include "device/initialize.h"

#include "compilation/background_compiler.h"
#include "compilation/compiler_library.h"
#include "compilation/idle_processor.h"
#include "compilation/interruptible_work.h"
#include "config/config.h"
#include "device/backend.h"
#include "device/registration.h"
#include "distributed/collective_watchdog.h"
#include "distributed/traced_collective.h"
#include "events/unraised_errors.h"
#include "execution/step_executor.h"
#include "execution/step_queue.h"
#include "memory/running_step.h"
#include "programs/shared_library.h"

#include "torch_ltc-c/runtime.h"

#include <torch/csrc/lazy/core/config.h>

#include <limits>
#include <mutex>

using namespace torch_ltc;

namespace {

std::atomic<bool> initialized{false};

/// Sets flags of torch::lazy to the values that our pipeline requires, and
/// disables features that it replaces.
void setTorchFlags() {
  // Makes torch's own code create the scalars 0, 1 and -1 with `MakeScalar`.
  FLAGS_torch_lazy_handle_special_scalars = true;
  // Disables torch's limit on the size of a graph: its check walks the graph
  // and runs it through the base pipeline. Our executor cuts graphs itself
  // (option max_trace_ops).
  FLAGS_torch_lazy_trim_graph_check_frequency =
      std::numeric_limits<int32_t>::max();
  FLAGS_torch_lazy_trim_graph_size = std::numeric_limits<int32_t>::max();
  FLAGS_torch_lazy_reuse_ir = false;
}

} // namespace

void torch_ltc::initialize() {
  static std::mutex mutex;
  std::lock_guard<std::mutex> lock(mutex);
  if (initialized)
    return;
  TORCH_CHECK(!torch::lazy::hasBackend(),
              "torch_ltc can't be initialized: another lazy backend (such as "
              "torch._lazy.ts_backend) is in use in this process, and PyTorch "
              "allows one.");
  config();
  setTorchFlags();
  if (std::string cpu = config().cpu.get(); !cpu.empty())
    ltcSetTargetCpu(cpu.c_str(), "");
  static Backend *backend = new Backend;
  static torch::lazy::BackendRegistrar registrar(backend);
  torch::lazy::LazyGraphExecutor::Register(&StepExecutor::get());
  registerFirstKernels();
  // Takes the first sample, so that the first step can determine whether a
  // processor has been idle.
  hasIdleProcessor();
  watchExitCode();
  releaseOwnPages();
  initialized = true;
}

bool torch_ltc::isInitialized() { return initialized; }

bool torch_ltc::isInBadFork() { return isWorkerMissing; }

void torch_ltc::finishCollectives() {
  if (isWorkerMissing)
    return;
  try {
    runAllTracedCollectives("the end of the process");
  } catch (const c10::Error &error) {
    reportUnraisedError(error.what_without_backtrace());
  }
}

void torch_ltc::shutDown() {
  if (!initialized)
    return;
  shutDownCollectiveWatchdog();
  shutDownStepQueue();
  CancelledCompilations cancelled;
  shutDownBackgroundCompiler();
  waitForInterruptedWork();
}
