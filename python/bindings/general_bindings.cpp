//===- general_bindings.cpp - General graphs of traced programs -----------===//

#include "bindings.h"
#include "traced_program.h"

#include "general/general_graph.h"

#include <pybind11/stl.h>
#include <torch/csrc/utils/pybind.h>

namespace py = pybind11;
using namespace torch_ltc;

namespace {

/// Python's handle of a general graph.
struct GeneralProgram {
  GeneralGraphPtr graph;
};

GeneralProgram checked(GeneralGraphPtr graph, const std::string &reason) {
  TORCH_CHECK(graph, "The programs have no general form: ", reason);
  return {std::move(graph)};
}

GeneralProgram generalise(const std::vector<TracedProgram> &programs) {
  TORCH_CHECK(!programs.empty(), "There is no program to generalise.");
  std::vector<TraceNumbers> traces;
  for (const TracedProgram &program : programs)
    traces.push_back(numbersOf(*program.graph));
  std::string reason;
  GeneralGraphPtr graph = GeneralGraph::generalise(programs.back().graph,
                                                   std::move(traces), reason);
  return checked(graph, reason);
}

} // namespace

void torch_ltc::bindGeneralGraphs(py::module_ &module) {
  using NoGil = py::call_guard<py::gil_scoped_release>;
  py::class_<GeneralProgram>(module, "GeneralGraph")
      .def(py::init(&generalise), py::arg("programs"), NoGil())
      .def("symbols",
           [](const GeneralProgram &p) {
             std::vector<std::string> texts;
             for (size_t i = 0; i < p.graph->symbols().size(); ++i)
               texts.push_back(p.graph->symbolText(i));
             return texts;
           })
      .def("text", [](const GeneralProgram &p) { return p.graph->text(); })
      .def(
          "bind",
          [](const GeneralProgram &p, const TracedProgram &program) {
            std::string reason;
            auto values = p.graph->bind(numbersOf(*program.graph), &reason);
            return std::pair(values, reason);
          },
          NoGil())
      .def(
          "instantiate",
          [](const GeneralProgram &p, const std::vector<int64_t> &values,
             std::string name) {
            return TracedProgram{
                std::make_shared<const GraphSnapshot>(
                    p.graph->instantiate(values, std::move(name))),
                {},
                {},
                {}};
          },
          NoGil())
      .def("stand_ins",
           [](const GeneralProgram &p) { return p.graph->standIns(); })
      .def(
          "refine",
          [](const GeneralProgram &p, const TracedProgram &program) {
            std::string reason;
            GeneralGraphPtr graph =
                p.graph->refine(numbersOf(*program.graph), reason);
            return checked(graph, reason);
          },
          NoGil());
  module.def("skeleton", [](const TracedProgram &program) {
    return numbersOf(*program.graph).skeleton.text();
  });
}
