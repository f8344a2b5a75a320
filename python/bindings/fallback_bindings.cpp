//===- fallback_bindings.cpp - Ops that run eagerly, for Python -----------===//

#include "bindings.h"

#include "fallback/eager_fallback.h"
#include "tracing/remembered_formula.h"

#include <torch/csrc/jit/frontend/function_schema_parser.h>
#include <torch/csrc/jit/python/pybind_utils.h>

namespace py = pybind11;
using namespace torch_ltc;

namespace {

py::object callEagerly(const std::string &name, const std::string &reason,
                       const py::args &args, const py::kwargs &kwargs) {
  c10::OperatorName parsed = torch::jit::parseName(name);
  c10::OperatorHandle op = c10::Dispatcher::singleton().findSchemaOrThrow(
      parsed.name.c_str(), parsed.overload_name.c_str());
  torch::jit::Stack stack = torch::jit::createStackForSchema(
      op.schema(), torch::jit::tuple_slice(args), kwargs, std::nullopt);
  {
    py::gil_scoped_release noGil;
    runFallback(op, stack, reason);
  }
  return torch::jit::createPyObjectForStack(std::move(stack));
}

} // namespace

void torch_ltc::bindFallback(py::module_ &module) {
  module.def("call_eagerly", &callEagerly);
  module.def("remember_formulas", &rememberFormulas);
}
