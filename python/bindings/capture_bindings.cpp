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

std::shared_ptr<CapturedStep>
makeStep(const StepData &first, const Recording &second,
         const std::vector<at::Tensor> &arguments, const Known &known,
         const std::vector<at::Tensor> &returned,
         std::vector<at::Tensor> stepCounts, GeneralStepPtr general) {
  std::vector<CapturedStep::KnownTensor> tensors;
  for (const auto &[tensor, name] : known)
    tensors.push_back({tensor, name});
  return std::make_shared<CapturedStep>(
      first, second, arguments, std::move(tensors), returned,
      std::move(stepCounts), std::move(general));
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

/// Describes the origin of a tensor whose sizes Python read: ("argument",
/// index, 0), ("value", node, result) or None.
py::object sizeSource(const Recording &recording, size_t source) {
  const Recording::SizeSource &found = recording.sizeSources.at(source);
  if (found.argument)
    return py::make_tuple("argument", *found.argument, 0);
  if (found.value)
    return py::make_tuple("value", found.value->position, found.value->index);
  return py::none();
}

void bindGeneralStep(py::module_ &module) {
  py::class_<GeneralStep, std::shared_ptr<GeneralStep>>(module, "GeneralStep")
      .def_static(
          "of",
          [](const Recording &recording) {
            ReleasedGil noGil;
            return std::const_pointer_cast<GeneralStep>(
                GeneralStep::of(recording));
          },
          py::arg("recording"))
      .def_property_readonly("name", &GeneralStep::name)
      .def(
          "quantities",
          [](const GeneralStep &step, const Recording &recording) {
            return step.quantitiesIn(*recording.graph);
          },
          py::arg("recording"))
      .def(
          "symbols",
          [](const GeneralStep &step, const Recording &recording) {
            return step.symbolsOf(recording.graph);
          },
          py::arg("recording"))
      .def(
          "quantity",
          [](const GeneralStep &step, uint32_t node, uint32_t result,
             size_t dim) { return step.quantity({node, result}, dim); },
          py::arg("node"), py::arg("result"), py::arg("dim"));
}

void bindCapturedStep(py::module_ &module) {
  py::class_<CapturedStep, std::shared_ptr<CapturedStep>>(module,
                                                          "CapturedStep")
      .def(py::init(&makeStep), py::arg("first"), py::arg("second"),
           py::arg("arguments"), py::arg("known"), py::arg("returned"),
           py::arg("step_counts"), py::arg("general"))
      .def("last_data", &CapturedStep::lastData)
      .def("select_sizes", &CapturedStep::selectSizes, py::arg("arguments"))
      .def(
          "add_sizes",
          [](CapturedStep &step, const std::vector<at::Tensor> &arguments,
             const std::vector<std::optional<int64_t>> &symbols) {
            ReleasedGil noGil;
            return step.addSizes(arguments, symbols);
          },
          py::arg("arguments"), py::arg("symbols"))
      .def_property_readonly("quantities", &CapturedStep::quantities)
      .def_property_readonly("integers", &CapturedStep::integers)
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

} // namespace

void torch_ltc::bindCapture(py::module_ &module) {
  bindGeneralStep(module);
  module.attr("MAX_CONSTANT_BYTES") = Recording::kMaxConstantBytes;
  py::class_<StepData>(module, "StepData");
  py::class_<Recording>(module, "Recording")
      .def(py::init<std::vector<at::Tensor>, bool>(), py::arg("arguments"),
           py::arg("numbers_vary") = false)
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
      .def("note_sizes_read", &Recording::noteSizesRead, py::arg("tensor"))
      .def("size_source", &sizeSource, py::arg("source"))
      .def_property_readonly(
          "data", [](const Recording &recording) { return recording.data; })
      .def_property_readonly(
          "skeleton",
          [](const Recording &recording) {
            return recording.graph
                       ? generalNumbersOf(recording.graph).skeleton.text()
                       : std::string();
          })
      .def_property_readonly(
          "integers",
          [](const Recording &recording) {
            return generalNumbersOf(recording.graph).integers;
          })
      .def_property_readonly("first_read", &Recording::firstRead)
      .def_property_readonly("reads_cpu_values", &Recording::readsCpuValues)
      .def_property_readonly("scalars", [](const Recording &recording) {
        return scalarValues(recording.scalars);
      });
  bindCapturedStep(module);
}
