//===- capture_bindings.cpp - Recordings and replays ----------------------===//

#include "bindings.h"
#include "released_gil.h"

#include "capture/captured_step.h"

#include <pybind11/stl.h>
#include <torch/csrc/utils/pybind.h>

namespace py = pybind11;
using namespace torch_ltc;

namespace {

using Known = std::vector<std::pair<at::Tensor, std::string>>;

std::shared_ptr<CapturedStep> makeStep(const Recording &first,
                                       const Recording &second,
                                       const std::vector<at::Tensor> &arguments,
                                       const Known &known,
                                       const std::vector<at::Tensor> &returned,
                                       std::vector<at::Tensor> stepCounts) {
  std::vector<CapturedStep::KnownTensor> tensors;
  for (const auto &[tensor, name] : known)
    tensors.push_back({tensor, name});
  return std::make_shared<CapturedStep>(first, second, arguments,
                                        std::move(tensors), returned,
                                        std::move(stepCounts));
}

py::list scalarValues(const std::vector<DynamicScalar> &scalars) {
  py::list list;
  for (const DynamicScalar &scalar : scalars)
    if (scalar.isFloat)
      list.append(scalar.asFloat);
    else
      list.append(scalar.asInt);
  return list;
}

} // namespace

void torch_ltc::bindCapture(py::module_ &module) {
  py::class_<Recording>(module, "Recording")
      .def(py::init<std::vector<at::Tensor>>(), py::arg("arguments"))
      .def("close", &Recording::close)
      .def_property_readonly(
          "runs", [](const Recording &recording) { return recording.numRuns; })
      .def_property_readonly("program",
                             [](const Recording &recording) {
                               return recording.program
                                          ? recording.program->name
                                          : std::string();
                             })
      .def_property_readonly(
          "draws",
          [](const Recording &recording) { return recording.draws.size(); })
      .def("drawn",
           [](const Recording &recording) {
             std::vector<std::pair<uintptr_t, std::string>> list;
             for (size_t i = 0; i < recording.draws.size(); ++i)
               if (HostDataPtr data = recording.draws[i].first.lock())
                 list.emplace_back(reinterpret_cast<uintptr_t>(data.get()),
                                   recording.distributions[i]);
             return list;
           })
      .def_property_readonly("first_read", &Recording::firstRead)
      .def_property_readonly("reads_cpu_values", &Recording::readsCpuValues)
      .def_property_readonly("scalars", [](const Recording &recording) {
        return scalarValues(recording.scalars);
      });
  py::class_<CapturedStep, std::shared_ptr<CapturedStep>>(module,
                                                          "CapturedStep")
      .def(py::init(&makeStep), py::arg("first"), py::arg("second"),
           py::arg("arguments"), py::arg("known"), py::arg("returned"),
           py::arg("step_counts"))
      .def("bind_scalar", &CapturedStep::bindScalar, py::arg("scalar"),
           py::arg("expression"))
      .def_property_readonly("program", &CapturedStep::programName)
      .def(
          "replay",
          [](CapturedStep &step, const std::vector<at::Tensor> &arguments,
             const std::vector<double> &values) {
            std::vector<at::Tensor> results;
            std::string failure;
            {
              // The GIL is released, because a replay waits while the queue is
              // full, and the worker may need the GIL to log.
              ReleasedGil noGil;
              failure = step.replay(arguments, values, results);
            }
            return std::make_pair(std::move(failure), std::move(results));
          },
          py::arg("arguments"), py::arg("values"));
}
