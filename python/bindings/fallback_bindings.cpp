//===- fallback_bindings.cpp - Ops that run eagerly, for Python -----------===//

#include "bindings.h"
#include "released_gil.h"

#include "fallback/eager_fallback.h"
#include "fallback/unchecked_operands.h"
#include "tracing/remembered_formula.h"

#include <torch/csrc/jit/frontend/function_schema_parser.h>
#include <torch/csrc/jit/python/pybind_utils.h>

namespace py = pybind11;
using namespace torch_ltc;

namespace {

struct OpCall {
  OpCall(const std::string &name, const py::args &args,
         const py::kwargs &kwargs)
      : op(find(torch::jit::parseName(name))),
        stack(torch::jit::createStackForSchema(
            op.schema(), torch::jit::tuple_slice(args), kwargs, std::nullopt)) {
  }

  static c10::OperatorHandle find(const c10::OperatorName &name) {
    return c10::Dispatcher::singleton().findSchemaOrThrow(
        name.name.c_str(), name.overload_name.c_str());
  }

  c10::OperatorHandle op;
  torch::jit::Stack stack;
};

void checkOperands(const std::string &name, const py::args &args,
                   const py::kwargs &kwargs) {
  OpCall call(name, args, kwargs);
  checkUncheckedOperands(call.op, call.stack);
}

py::object callEagerly(const std::string &name, const std::string &reason,
                       const py::args &args, const py::kwargs &kwargs) {
  auto [op, stack] = OpCall(name, args, kwargs);
  {
    ReleasedGil noGil;
    runFallback(op, stack, reason);
  }
  return torch::jit::createPyObjectForStack(std::move(stack));
}

} // namespace

void torch_ltc::bindFallback(py::module_ &module) {
  module.def("call_eagerly", &callEagerly);
  module.def("check_unchecked_operands", &checkOperands);
  module.def("remember_formulas", &rememberFormulas);
}
