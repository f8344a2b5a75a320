//===- program_bindings.cpp - Traced programs, at any stage ---------------===//

#include "bindings.h"
#include "released_gil.h"
#include "traced_program.h"

#include "compilation/program_builder.h"
#include "compilation/program_maker.h"
#include "graph/live_tensors.h"
#include "graph/pending_graph.h"
#include "memory/host_data.h"
#include "programs/program_cache.h"

#include <pybind11/stl.h>
#include <torch/csrc/utils/pybind.h>

namespace py = pybind11;
using namespace torch_ltc;

std::string torch_ltc::pythonDType(c10::ScalarType type) {
  return std::string(c10::getDtypeNames(type).first);
}

namespace {

py::dict tensorRow(const torch::lazy::Shape &shape) {
  py::dict row;
  row["dtype"] = pythonDType(shape.scalar_type());
  row["sizes"] = shape.sizes().vec();
  return row;
}

py::list inputs(const TracedProgram &program) {
  py::list result;
  for (size_t i = 0; i < program.graph->parameters.size(); ++i) {
    const SnapshotParameter &parameter = program.graph->parameters[i];
    py::dict row = tensorRow(parameter.shape);
    row["name"] = parameter.name;
    row["donatable"] = parameter.donatable;
    row["data"] =
        program.parameters.empty()
            ? 0
            : reinterpret_cast<uintptr_t>(program.parameters[i].get());
    result.append(std::move(row));
  }
  return result;
}

py::list scalars(const TracedProgram &program) {
  py::list result;
  for (size_t i = 0; i < program.graph->scalarIsFloat.size(); ++i) {
    bool isFloat = program.graph->scalarIsFloat[i];
    py::object value = py::none();
    if (!program.scalars.empty())
      value = isFloat ? py::cast(program.scalars[i].asFloat)
                      : py::cast(program.scalars[i].asInt);
    result.append(py::make_tuple(isFloat ? "float" : "int", value));
  }
  return result;
}

py::list outputs(const TracedProgram &program) {
  py::list result;
  for (ResultRef ref : program.graph->results) {
    py::dict row = tensorRow(program.graph->shape(ref));
    const SnapshotNode &node = program.graph->nodes[ref.position];
    row["name"] =
        node.record ? "" : program.graph->parameters[node.parameter].name;
    row["parameter"] = node.record ? -1 : int64_t(node.parameter);
    result.append(std::move(row));
  }
  return result;
}

std::string stage(const TracedProgram &program, const StageRequest &request) {
  try {
    return stageModule(*program.graph, request);
  } catch (const std::runtime_error &error) {
    TORCH_CHECK(false, error.what());
  }
}

TracedProgram pending(const std::vector<at::Tensor> &tensors) {
  PendingValues values;
  auto graph =
      std::make_shared<const GraphSnapshot>(pendingGraph(tensors, &values));
  return {graph, std::move(values.parameters), std::move(values.scalars),
          std::move(values.resultOfTensor)};
}

/// Returns a request for the module in the form for other compilers, which has
/// no library or host calls.
StageRequest portableRequest(const std::string &stage,
                             std::vector<std::string> legalOps) {
  StageRequest request;
  request.stage = stage;
  request.portable = true;
  request.legalOps = std::move(legalOps);
  return request;
}

std::string textAt(const TracedProgram &program, const std::string &name,
                   std::vector<std::string> legalOps, bool locations) {
  StageRequest request = portableRequest(name, std::move(legalOps));
  request.locations = locations;
  return stage(program, request);
}

py::bytes bytecodeAt(const TracedProgram &program, const std::string &name,
                     std::vector<std::string> legalOps) {
  StageRequest request = portableRequest(name, std::move(legalOps));
  request.bytecode = true;
  std::string bytes;
  {
    ReleasedGil noGil;
    bytes = stage(program, request);
  }
  return py::bytes(bytes);
}

} // namespace

void torch_ltc::bindPrograms(py::module_ &module) {
  using NoGil = py::call_guard<ReleasedGil>;
  py::class_<TracedProgram>(module, "TracedProgram")
      .def_property_readonly(
          "name", [](const TracedProgram &p) { return p.graph->name; })
      .def_property_readonly(
          "entry", [](const TracedProgram &p) { return entryName(*p.graph); })
      .def("inputs", &inputs)
      .def("scalars", &scalars)
      .def("outputs", &outputs)
      .def_property_readonly(
          "output_of_tensor",
          [](const TracedProgram &p) { return p.resultOfTensor; })
      .def("input_tensor",
           [](const TracedProgram &p, size_t index) {
             TORCH_CHECK(index < p.parameters.size(),
                         "The program was traced without values.");
             ReleasedGil noGil;
             return p.parameters[index]->copyToTensor();
           })
      .def("text", &textAt, py::arg("stage"), py::arg("legal_ops"),
           py::arg("locations"), NoGil())
      .def("bytecode", &bytecodeAt, py::arg("stage"), py::arg("legal_ops"))
      .def(
          "ir", [](const TracedProgram &p) { return graphText(*p.graph); },
          NoGil())
      .def(
          "dot", [](const TracedProgram &p) { return graphDot(*p.graph); },
          NoGil())
      .def(
          "dump", [](const TracedProgram &p) { ensureTracedDumped(*p.graph); },
          NoGil());
  module.def("pending_program", &pending, NoGil());
  module.def(
      "recent_program",
      [](const std::string &name) {
        return TracedProgram{recentProgram(name).graph, {}, {}, {}};
      },
      NoGil());
  module.def(
      "data_key",
      [](const at::Tensor &tensor) {
        TensorAccess access;
        TensorDataPtr data = tensorDataOf(tensor);
        return data ? reinterpret_cast<uintptr_t>(data->data().get()) : 0;
      },
      NoGil());
}
