//===- general_bindings.cpp - General graphs of traced programs -----------===//

#include "bindings.h"
#include "released_gil.h"
#include "symbolic_program.h"
#include "traced_program.h"

#include <pybind11/stl.h>
#include <torch/csrc/utils/pybind.h>

namespace py = pybind11;
using namespace torch_ltc;

namespace {

GeneralProgram checked(GeneralGraphPtr graph, const std::string &reason) {
  TORCH_CHECK(graph, "The programs have no general form: ", reason);
  return {std::move(graph)};
}

GeneralProgram generalize(const std::vector<TracedProgram> &programs,
                          std::optional<size_t> mostSymbols) {
  TORCH_CHECK(!programs.empty(), "There is no program to generalize.");
  std::vector<TraceNumbers> traces;
  for (const TracedProgram &program : programs)
    traces.push_back(numbersOf(*program.graph));
  std::string reason;
  GeneralGraphPtr graph =
      GeneralGraph::generalize(programs.back().graph, std::move(traces), reason,
                               mostSymbols.value_or(SIZE_MAX));
  return checked(graph, reason);
}

using NoGil = py::call_guard<ReleasedGil>;

/// Returns why the program isn't valid at these values of its symbols; "" if it
/// is valid.
std::string problemAt(const SymbolicProgram &program,
                      const std::vector<int64_t> &values) {
  std::string reason;
  try {
    GraphSnapshot graph = program.general()->instantiate(values, "sizes");
    (void)program.isValid(values, numbersOf(graph), reason);
  } catch (const c10::Error &error) {
    reason = error.what_without_backtrace();
  }
  return reason;
}

void bindSymbolicPrograms(py::module_ &module) {
  py::class_<SymbolicProgram, std::shared_ptr<SymbolicProgram>>(
      module, "SymbolicProgram")
      .def(py::init(
               [](const GeneralProgram &general,
                  const std::vector<std::tuple<std::string, int64_t, int64_t>>
                      &ranges,
                  const std::string &stage, std::vector<std::string> legalOps,
                  bool bytecode) {
                 std::vector<SymbolRange> symbols;
                 for (const auto &[name, least, most] : ranges)
                   symbols.push_back({name, least, most});
                 StageRequest request;
                 request.stage = stage;
                 request.portable = true;
                 request.legalOps = std::move(legalOps);
                 request.bytecode = bytecode;
                 try {
                   return std::make_shared<SymbolicProgram>(
                       general.graph, std::move(symbols), request);
                 } catch (const std::runtime_error &error) {
                   TORCH_CHECK(false, error.what());
                 }
               }),
           py::arg("general"), py::arg("ranges"), py::arg("stage"),
           py::arg("legal_ops"), py::arg("bytecode"), NoGil())
      .def("symbols",
           [](const SymbolicProgram &p) {
             std::vector<std::tuple<std::string, int64_t, int64_t>> result;
             for (const SymbolRange &range : p.symbols())
               result.emplace_back(range.name, range.least, range.most);
             return result;
           })
      .def("module",
           [](const SymbolicProgram &p) { return py::bytes(p.module()); })
      .def("parameters", &SymbolicProgram::parameters)
      .def("problem_at", &problemAt, NoGil());
  module.def(
      "specialize_module",
      [](const std::string &text,
         const std::vector<std::pair<std::string, int64_t>> &sizes) {
        try {
          return specializeModule(text, sizes);
        } catch (const std::runtime_error &error) {
          TORCH_CHECK(false, error.what());
        }
      },
      NoGil());
}

} // namespace

void torch_ltc::bindGeneralGraphs(py::module_ &module) {
  py::class_<GeneralProgram>(module, "GeneralGraph")
      .def(py::init(&generalize), py::arg("programs"),
           py::arg("most_symbols") = py::none(), NoGil())
      .def("symbols",
           [](const GeneralProgram &p) {
             std::vector<std::string> texts;
             for (size_t i = 0; i < p.graph->symbols().size(); ++i)
               texts.push_back(p.graph->symbolText(i));
             return texts;
           })
      .def_property_readonly(
          "name",
          [](const GeneralProgram &p) { return p.graph->hash().text(); })
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
      .def("parameter_sizes",
           [](const GeneralProgram &p) {
             std::vector<std::tuple<size_t, size_t, std::string>> result;
             for (const ParameterSize &size : p.graph->parameterSizes())
               result.emplace_back(size.parameter, size.dim, size.text);
             return result;
           })
      .def(
          "refine",
          [](const GeneralProgram &p, const TracedProgram &program) {
            std::string reason;
            GeneralGraphPtr graph =
                p.graph->refine(numbersOf(*program.graph), reason);
            return checked(graph, reason);
          },
          NoGil());
  bindSymbolicPrograms(module);
  module.def("skeleton", [](const TracedProgram &program) {
    return numbersOf(*program.graph).skeleton.text();
  });
}
