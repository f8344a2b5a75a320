//===- config_bindings.cpp - The configuration table ----------------------===//

#include "bindings.h"
#include "released_gil.h"

#include "config/config.h"

#include <pybind11/stl.h>

namespace py = pybind11;
using namespace torch_ltc;

namespace {

const char *sourceName(OptionSource source) {
  static const char *const names[] = {"default", "environment", "program"};
  return names[int(source)];
}

const char *effectName(OptionEffect effect) {
  static const char *const names[] = {"none", "trace", "program", "code"};
  return names[int(effect)];
}

py::list options() {
  py::list result;
  for (const OptionDescription &option : describeOptions()) {
    py::dict row;
    row["name"] = option.name;
    row["type"] = option.type;
    row["default"] = option.defaultValue;
    row["value"] = option.value;
    row["source"] = sourceName(option.source);
    row["help"] = option.help;
    row["environment"] = option.environment;
    row["choices"] = option.choices;
    row["effect"] = effectName(option.effect);
    result.append(std::move(row));
  }
  return result;
}

/// Chooses the conversion by the type of `value` instead of trying each one,
/// because Python's bool is an int.
OptionValue toOptionValue(const py::object &value) {
  if (py::isinstance<py::bool_>(value))
    return value.cast<bool>();
  if (py::isinstance<py::int_>(value)) {
    int overflow = 0;
    int64_t number = PyLong_AsLongLongAndOverflow(value.ptr(), &overflow);
    if (overflow)
      throw py::value_error("An option's value must fit in 64 bits.");
    return number;
  }
  if (py::isinstance<py::str>(value))
    return value.cast<std::string>();
  throw py::value_error("An option's value is a bool, an int or a str, not a " +
                        std::string(Py_TYPE(value.ptr())->tp_name) + ".");
}

} // namespace

void torch_ltc::bindConfig(py::module_ &module) {
  // pybind11 converts std::invalid_argument to ValueError.
  module.def("config_options", &options);
  module.def("config_get", &getOption);
  module.def("config_set",
             [](const std::string &name, const py::object &value) {
               OptionValue converted = toOptionValue(value);
               ReleasedGil noGil;
               setOption(name, converted);
             });
}
