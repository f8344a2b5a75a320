//===- backend_bindings.cpp - Backends written in Python ------------------===//

#include "bindings.h"
#include "released_gil.h"
#include "symbolic_program.h"
#include "traced_program.h"

#include "compilation/external_backend.h"
#include "events/portable_trace.h"
#include "memory/language_lock.h"

#include <ATen/Functions.h>
#include <pybind11/stl.h>
#include <torch/csrc/utils/pybind.h>

#include <stdexcept>
#include <unistd.h>

namespace py = pybind11;
using namespace torch_ltc;

namespace {

/// A Python object whose last reference may be dropped by a thread that doesn't
/// hold the GIL.
using SharedObject = std::shared_ptr<py::object>;

SharedObject share(py::object object) {
  return SharedObject(new py::object(std::move(object)), [](py::object *held) {
    if (!Py_IsInitialized())
      return; // the interpreter has already destroyed it
    py::gil_scoped_acquire gil;
    delete held;
  });
}

/// Calls `function` with the GIL. Converts an exception to a std::runtime_error
/// with the same message, which torch_ltc._backends.registry has written for
/// the user. Propagates exceptions that don't derive from Exception, such as
/// KeyboardInterrupt.
template <typename Function> auto callPython(Function function) {
  py::gil_scoped_acquire gil;
  try {
    return function();
  } catch (py::error_already_set &error) {
    if (!error.matches(PyExc_Exception))
      throw;
    std::string text = py::str(error.value()).cast<std::string>();
    throw std::runtime_error(text.empty() ? std::string(error.what()) : text);
  }
}

at::Tensor onMemory(void *memory, const torch::lazy::Shape &shape) {
  auto type = shape.scalar_type() == c10::ScalarType::Undefined
                  ? c10::kFloat
                  : shape.scalar_type();
  return at::from_blob(memory, shape.sizes(),
                       at::TensorOptions().dtype(type).device(c10::kCPU));
}

class PythonProgram final : public Program {
public:
  /// `sizes`: the values of the symbols that are passed after the scalars.
  PythonProgram(GraphSnapshotPtr graph, SharedObject function,
                std::vector<int64_t> sizes)
      : graph(std::move(graph)), function(std::move(function)),
        sizes(std::move(sizes)) {}

  void run(c10::ArrayRef<void *> parameters,
           c10::ArrayRef<DynamicScalar> values,
           c10::ArrayRef<void *> outputPointers,
           const RunConditions &) override {
    callPython([&] {
      py::list inputs, numbers, results;
      for (size_t i = 0; i < parameters.size(); ++i)
        inputs.append(onMemory(parameters[i], graph->parameters[i].shape));
      for (const DynamicScalar &value : values)
        numbers.append(value.isFloat ? py::cast(value.asFloat)
                                     : py::cast(value.asInt));
      for (int64_t size : sizes)
        numbers.append(py::cast(size));
      for (size_t i = 0; i < outputPointers.size(); ++i)
        results.append(
            onMemory(outputPointers[i], graph->shape(graph->results[i])));
      (*function)(inputs, numbers, results);
      return 0;
    });
  }

private:
  GraphSnapshotPtr graph;
  SharedObject function;
  std::vector<int64_t> sizes;
};

/// Returns a function that binds `program` to the sizes of a graph. `run` is
/// the function that the backend compiled for `program`.
SizeBinder sizeBinder(std::shared_ptr<const SymbolicProgram> program,
                      SharedObject run) {
  return [program, run](const GraphSnapshotPtr &graph, const Sighting &sighting,
                        std::string &reason) -> ProgramPtr {
    if (!program->isValid(sighting.values, sighting.numbers, reason))
      return nullptr;
    std::vector<int64_t> sizes;
    for (size_t symbol : program->parameters())
      sizes.push_back(sighting.values[symbol]);
    return std::make_shared<PythonProgram>(graph, run, std::move(sizes));
  };
}

/// Calls `compile`, which returns a symbolic program and its function, or the
/// reason why there is none. Returns the program's binder. If there is no
/// program, returns an empty function and stores the reason in `reason`.
SizeBinder compileGeneral(const SharedObject &compile,
                          const GeneralGraphPtr &general, std::string &reason) {
  return callPython([&]() -> SizeBinder {
    py::object result = (*compile)(GeneralProgram{general});
    if (py::isinstance<py::str>(result)) {
      reason = result.cast<std::string>();
      return {};
    }
    auto [program, run] =
        result.cast<std::pair<std::shared_ptr<SymbolicProgram>, py::object>>();
    return sizeBinder(program, share(std::move(run)));
  });
}

std::unordered_set<std::string> nameSet(const std::vector<std::string> &names) {
  return {names.begin(), names.end()};
}

void registerBackend(const std::string &name, py::object compile,
                     const std::vector<std::string> &unsupportedOps,
                     const std::vector<std::string> &legalOps,
                     const py::object &generalCompile) {
  ExternalBackend backend;
  backend.name = name;
  backend.unsupportedOps = nameSet(unsupportedOps);
  backend.legalOps = nameSet(legalOps);
  SharedObject function = share(std::move(compile));
  backend.compile = [function](GraphSnapshotPtr graph) -> ProgramPtr {
    return callPython([&] {
      py::object run = (*function)(TracedProgram{graph, {}, {}, {}});
      return std::make_shared<PythonProgram>(graph, share(std::move(run)),
                                             std::vector<int64_t>());
    });
  };
  if (!generalCompile.is_none())
    backend.compileGeneral =
        [compile = share(generalCompile)](const GeneralGraphPtr &general,
                                          std::string &reason) {
          return compileGeneral(compile, general, reason);
        };
  ReleasedGil noGil;
  registerExternalBackend(std::move(backend));
}

void setFinder(py::object finder) {
  SharedObject function = share(std::move(finder));
  ReleasedGil noGil;
  setBackendFinder([function](const std::string &name) {
    callPython([&] {
      (*function)(name);
      return 0;
    });
  });
}

void *releaseGil() {
  return Py_IsInitialized() && PyGILState_Check() ? PyEval_SaveThread()
                                                  : nullptr;
}
void acquireGil(void *state) {
  PyEval_RestoreThread(static_cast<PyThreadState *>(state));
}
/// Runs Python's pending signal handlers and throws the exception that one of
/// them raises. Does nothing outside the main thread, because Python runs
/// handlers only there.
void raiseOfSignals() {
  if (gettid() != getpid() || !Py_IsInitialized())
    return;
  py::gil_scoped_acquire gil;
  if (PyErr_CheckSignals() != 0)
    throw py::error_already_set();
}

} // namespace

void torch_ltc::bindBackends(py::module_ &module) {
  static const LanguageLock lock{releaseGil, acquireGil, raiseOfSignals};
  setLanguageLock(lock);
  module.def("register_backend", &registerBackend, py::arg("name"),
             py::arg("compile"), py::arg("unsupported_ops"),
             py::arg("legal_ops"), py::arg("compile_general") = py::none());
  module.def("remove_backend", &removeExternalBackend,
             py::call_guard<ReleasedGil>());
  module.def("set_backend_finder", &setFinder);
  module.def("enter_portable_trace", &enterPortableTrace);
  module.def("leave_portable_trace", &leavePortableTrace);
}
