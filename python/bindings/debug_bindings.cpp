//===- debug_bindings.cpp - Texts of programs -----------------------------===//

#include "bindings.h"
#include "released_gil.h"
#include "symbolic_program.h"
#include "traced_program.h"

#include "compilation/dump.h"
#include "compilation/general_programs.h"
#include "graph/live_tensors.h"
#include "graph/pending_graph.h"
#include "graph/tensor_names.h"
#include "memory/host_data.h"
#include "programs/program_cache.h"
#include "source/source_location.h"

#include <pybind11/stl.h>
#include <torch/csrc/utils/pybind.h>

namespace py = pybind11;
using namespace torch_ltc;

namespace {

/// Returns the text of `graph` at `stage`. An error of the compiler becomes a
/// c10::Error, which Python gets as RuntimeError.
std::string graphTextAt(const GraphSnapshot &graph, const std::string &stage) {
  try {
    return stageText(graph, stage);
  } catch (const std::runtime_error &error) {
    TORCH_CHECK(false, error.what());
  }
}

/// Returns the text at `stage` of the program for all sizes.
std::string generalText(GeneralGraphPtr general, const std::string &stage) {
  if (stage == "ir")
    return general->text();
  StageRequest request;
  request.stage = stage;
  try {
    return SymbolicProgram(std::move(general), {}, request).module();
  } catch (const std::runtime_error &error) {
    TORCH_CHECK(false, error.what());
  }
}

py::list programTensors(const std::string &name) {
  RecentProgram recent = recentProgram(name);
  py::list result;
  for (const TensorDescription &tensor :
       describeTensors(*recent.graph, *recent.program)) {
    py::dict row;
    row["role"] = tensor.isInput ? "input" : "output";
    row["index"] = tensor.index;
    row["name"] = tensor.name;
    row["dtype"] = pythonDType(tensor.shape.scalar_type());
    row["sizes"] = tensor.shape.sizes().vec();
    row["bytes"] = byteSize(tensor.shape);
    row["donated"] = tensor.isDonated;
    result.append(std::move(row));
  }
  return result;
}

py::list programCommands(const std::string &name) {
  py::list result;
  for (const ProgramCommand &command :
       recentProgram(name).program->commands()) {
    py::dict row;
    row["name"] = command.name;
    row["location"] = command.location;
    row["module"] = command.modulePath;
    row["results"] = command.resultTypes;
    row["calls"] = command.calls;
    row["seconds"] = command.seconds;
    result.append(std::move(row));
  }
  return result;
}

} // namespace

void torch_ltc::bindDebug(py::module_ &module) {
  using NoGil = py::call_guard<ReleasedGil>;
  py::list stages;
#define LTC_STAGE(name, file, text)                                            \
  stages.append(py::make_tuple(name, file, text));
#include "torch_ltc-c/stages.def"
#undef LTC_STAGE
  module.attr("STAGES") = py::tuple(stages);
  module.def(
      "tensor_text",
      [](const std::vector<at::Tensor> &tensors, const std::string &stage) {
        return graphTextAt(pendingGraph(tensors), stage);
      },
      NoGil());
  module.def(
      "program_text",
      [](const std::string &name, const std::string &stage) {
        if (GeneralGraphPtr general = GeneralPrograms::get().find(name))
          return generalText(std::move(general), stage);
        return graphTextAt(*recentProgram(name).graph, stage);
      },
      NoGil());
  module.def("program_tensors", &programTensors);
  module.def("program_commands", &programCommands);
  module.def("set_tensor_name", &setTensorName, NoGil());
  module.def("mark_size", &markSize, NoGil());
  module.def("tensor_name", &tensorName, NoGil());
  module.def(
      "tensor_origin",
      [](const at::Tensor &tensor) {
        TensorAccess access;
        TensorDataPtr data = tensorDataOf(tensor);
        HostDataPtr host = data ? data->data() : nullptr;
        return shortText(host ? host->location() : 0);
      },
      NoGil());
  module.def("current_line", [] { return shortText(captureLocation()); });
}
