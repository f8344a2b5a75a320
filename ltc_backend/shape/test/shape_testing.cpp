//===- shape_testing.cpp - Shape inference for Python tests ---------------===//
//
// The module `_shape_testing`: closed forms, Meta kernels and the cache as
// Python functions, only for the tests and the benchmark of this folder.
//
//===----------------------------------------------------------------------===//

#include "ir/op_record.h"
#include "shape/shape_inference.h"

#include <torch/csrc/jit/python/pybind_utils.h>
#include <torch/csrc/utils/pybind.h>

#include <chrono>
#include <string>
#include <utility>
#include <vector>

namespace py = pybind11;
using namespace torch_ltc;

namespace {

struct Row {
  const char *schema;
  const char *shapeName;
  const char *dtypeName;
  ShapeRule shapeRule;
  DTypeRule dtypeRule;

  std::string name() const {
    std::string text = schema;
    return text.substr(0, text.find('('));
  }
};

const Row rows[] = {
#define OP_RECORD(Schema, Emit, FamilyName, ShapeName, DTypeName, ...)         \
  {Schema, #ShapeName, #DTypeName, ShapeRule::ShapeName##Shape,                \
   DTypeRule::DTypeName##DType},
#include "OpRecords.inc"
};

/// A call of an op: its arguments in schema order, with defaults filled in.
struct Call {
  const Row &row;
  c10::OperatorHandle op;
  std::vector<c10::IValue> arguments;
};

const Row &findRow(const std::string &name) {
  for (const Row &row : rows)
    if (row.name() == name)
      return row;
  throw py::key_error(name);
}

Call makeCall(const std::string &name, const py::tuple &positional,
              const py::dict &keywords) {
  const Row &row = findRow(name);
  size_t dot = name.find('.');
  std::string overload = dot == std::string::npos ? "" : name.substr(dot + 1);
  Call call{row,
            c10::Dispatcher::singleton().findSchemaOrThrow(
                name.substr(0, dot).c_str(), overload.c_str()),
            {}};
  size_t position = 0;
  for (const c10::Argument &argument : call.op.schema().arguments()) {
    py::str key(argument.name());
    if (position < positional.size())
      call.arguments.push_back(torch::jit::toIValue(
          positional[position], argument.type(), argument.N()));
    else if (keywords.contains(key))
      call.arguments.push_back(
          torch::jit::toIValue(keywords[key], argument.type(), argument.N()));
    else if (argument.default_value())
      call.arguments.push_back(*argument.default_value());
    else
      throw py::type_error("missing argument " + argument.name());
    ++position;
  }
  return call;
}

using Results = c10::SmallVector<ResultShape, 4>;

/// Returns a list with (dtype, sizes) for each result, or None for an undefined
/// one.
py::list toPython(const Results &results) {
  py::list list;
  for (const ResultShape &result : results) {
    if (result.dtype == at::ScalarType::Undefined)
      list.append(py::none());
    else
      list.append(py::make_tuple(
          py::reinterpret_borrow<py::object>(
              reinterpret_cast<PyObject *>(torch::getTHPDtype(result.dtype))),
          std::vector<int64_t>(result.sizes.begin(), result.sizes.end())));
  }
  return list;
}

py::object inferByRule(const std::string &name, const py::tuple &positional,
                       const py::dict &keywords) {
  Call call = makeCall(name, positional, keywords);
  Results results;
  if (!inferClosedForm(call.row.shapeRule, call.row.dtypeRule, call.op.schema(),
                       call.arguments, results))
    return py::none();
  return toPython(results);
}

py::list inferByMeta(const std::string &name, const py::tuple &positional,
                     const py::dict &keywords) {
  Call call = makeCall(name, positional, keywords);
  Results results;
  inferWithMetaKernel(call.op, call.arguments, results);
  return toPython(results);
}

/// Returns the time of one inference in nanoseconds, the minimum of five
/// rounds.
double measure(const std::string &name, const py::tuple &positional,
               const py::dict &keywords, int64_t iterations, bool byMeta) {
  Call call = makeCall(name, positional, keywords);
  double best = 1e30;
  Results results;
  for (int round = 0; round < 5; ++round) {
    auto begin = std::chrono::steady_clock::now();
    for (int64_t i = 0; i < iterations; ++i) {
      if (byMeta)
        inferWithMetaKernel(call.op, call.arguments, results);
      else
        inferClosedForm(call.row.shapeRule, call.row.dtypeRule,
                        call.op.schema(), call.arguments, results);
    }
    std::chrono::duration<double, std::nano> spent =
        std::chrono::steady_clock::now() - begin;
    best = std::min(best, spent.count() / double(iterations));
  }
  return best;
}

torch::lazy::hash_t keyOf(uint64_t key) {
  return torch::lazy::hash_t(c10::uint128(key * 31, key));
}

} // namespace

PYBIND11_MODULE(_shape_testing, module) {
  module.def("rows", [] {
    py::list list;
    for (const Row &row : rows)
      list.append(py::make_tuple(row.name(), row.shapeName, row.dtypeName));
    return list;
  });
  module.def("infer", &inferByRule);
  module.def("infer_with_meta_kernel", &inferByMeta);
  module.def("infer_any_with_meta_kernel", [](const std::string &name,
                                              const at::Tensor &tensor) {
    Results results;
    inferWithMetaKernel(
        c10::Dispatcher::singleton().findSchemaOrThrow(name.c_str(), ""),
        {tensor}, results);
    return toPython(results);
  });
  module.def("nanoseconds", &measure);
  module.def("wrapped_number", [](const at::Tensor &tensor) {
    at::Tensor copy = tensor.clone();
    copy.unsafeGetTensorImpl()->set_wrapped_number(true);
    return copy;
  });
  py::class_<ShapeCache>(module, "ShapeCache")
      .def(py::init<size_t>())
      .def("find",
           [](ShapeCache &cache, uint64_t key) -> py::object {
             Results results;
             bool isFound;
             {
               py::gil_scoped_release release;
               isFound = cache.find(keyOf(key), results);
             }
             if (!isFound)
               return py::none();
             return toPython(results);
           })
      .def("insert",
           [](ShapeCache &cache, uint64_t key, std::vector<int64_t> sizes) {
             ResultShape shape;
             shape.dtype = at::ScalarType::Float;
             shape.sizes.assign(sizes.begin(), sizes.end());
             py::gil_scoped_release release;
             cache.insert(keyOf(key), shape);
           })
      .def("clear", &ShapeCache::clear)
      .def("__len__", &ShapeCache::size);
}
