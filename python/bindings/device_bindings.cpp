//===- device_bindings.cpp - Life cycle and steps -------------------------===//

#include "bindings.h"
#include "released_gil.h"

#include "compilation/background_compiler.h"
#include "compilation/compiler_library.h"
#include "device/initialize.h"
#include "distributed/traced_collective.h"
#include "eager_semantics/registration.h"
#include "execution/assumed_truths.h"
#include "execution/step_executor.h"
#include "graph/first_tensor.h"
#include "memory/lazy_device.h"
#include "ops/autocast.h"
#include "programs/program_cache.h"
#include "tracing/custom_ops.h"

#include "torch_ltc-c/runtime.h"

#include <ATen/core/Tensor.h>
#include <pybind11/stl.h>
#include <torch/csrc/utils/pybind.h>

namespace py = pybind11;
using namespace torch_ltc;

namespace {

py::dict buildInfo() {
  py::dict info;
  info["version"] = TORCH_LTC_VERSION;
  info["torch"] = TORCH_LTC_TORCH_VERSION;
  info["llvm"] = TORCH_LTC_LLVM_VERSION;
  info["onednn"] = TORCH_LTC_ONEDNN_VERSION;
  info["protobuf"] = TORCH_LTC_PROTOBUF_VERSION;
#ifdef __clang__
  info["compiler"] = "clang++ " __clang_version__;
#else
  info["compiler"] = "g++ " __VERSION__;
#endif
  info["cpu_name"] = ltcTargetCpuName();
  info["cpu_features"] = ltcTargetCpuFeatures();
  return info;
}

std::string loadCompiler() {
  try {
    return compilerLibrary().path;
  } catch (const std::runtime_error &error) {
    TORCH_CHECK(false, error.what());
  }
}

/// The Python function that is called before the first lazy tensor is created;
/// never destroyed.
py::object *pythonHook = nullptr;

void callPythonHook() {
  py::gil_scoped_acquire gil;
  (*pythonHook)();
}

/// The Python function that raises the error of a failed check; never
/// destroyed.
py::object *failedCheckHook = nullptr;

void callFailedCheckHook() {
  py::gil_scoped_acquire gil;
  (*failedCheckHook)();
}

void initializeAndRegisterExit() {
  using NoGil = py::call_guard<ReleasedGil>;
  {
    ReleasedGil noGil;
    initialize();
  }
  // The worker may log, which takes the GIL, so it must end before Python does.
  py::object atExit = py::module_::import("atexit").attr("register");
  atExit(py::cpp_function([] { shutDown(); }, NoGil()));
  // Registered last, so that it runs first: other ranks may wait for this
  // rank's collectives.
  atExit(py::cpp_function([] { finishCollectives(); }, NoGil()));
}

} // namespace

void torch_ltc::bindDevice(py::module_ &module) {
  using NoGil = py::call_guard<ReleasedGil>;
  module.def("initialize", &initializeAndRegisterExit);
  module.def("is_initialized", &isInitialized);
  module.def("is_in_bad_fork", &isInBadFork);
  module.def("build_info", &buildInfo);
  module.def("pass_functionalization", &registerPassedFunctionalization);
  module.def("set_fake_keys", [](const at::Tensor &tensor) {
    tensor.unsafeGetTensorImpl()->_change_backend_component_keys(
        c10::Device(autocastDevice));
  });
  module.def("set_first_tensor_hook", [](py::object hook) {
    pythonHook = new py::object(std::move(hook));
    beforeFirstTensor(&callPythonHook);
  });
  module.def("set_failed_check_hook", [](py::object hook) {
    failedCheckHook = new py::object(std::move(hook));
    onFailedAssumption(&callFailedCheckHook);
  });
  module.def("load_compiler", &loadCompiler, NoGil());
  module.def("register_new_custom_ops", &registerNewCustomOps);
  module.def("is_our_kernel_at_functionalize", [](const std::string &name) {
    return isOurKernelAtFunctionalize(torch::jit::parseName(name));
  });
  module.def(
      "mark_step",
      [](const std::string &, bool wait) {
        StepExecutor::get().markStep(wait);
      },
      py::arg("device") = "", py::arg("wait") = false, NoGil());
  module.def(
      "run_traced_collectives",
      [](const std::string &reader) { runAllTracedCollectives(reader); },
      NoGil());
  module.def(
      "wait_device_ops", [] { StepExecutor::get().waitForAll(); }, NoGil());
  module.def(
      "wait_for_compilations",
      [] {
        for (const ProgramPtr &program : loadedPrograms())
          program->requestCompilation();
        waitForBackgroundCompilations();
      },
      NoGil());
  module.def(
      "sync_tensors",
      [](const std::vector<at::Tensor> &tensors, bool wait) {
        StepExecutor::get().syncTensors(tensors, wait);
      },
      py::arg("tensors"), py::arg("wait") = true, NoGil());
  py::class_<AssumedTruth, std::shared_ptr<AssumedTruth>>(module,
                                                          "AssumedTruth")
      .def("value", &AssumedTruth::value);
  module.def("begin_assuming", &beginAssuming);
  module.def("end_assuming", &endAssuming);
  module.def("lock_keys",
             [] { return c10::DispatchKeySet(lockKey).raw_repr(); });
  module.def("prepare_autocast", &prepareAutocast, NoGil());
  module.def("clear_autocast_cache", &clearAutocastCache);
  module.def("pending_ops", [] { return StepExecutor::get().numTracedOps(); });
}
