//===- optimizer_bindings.cpp - Steps of torch.optim's optimizers ---------===//

#include "bindings.h"
#include "released_gil.h"

#include "ops/adam.h"

#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/python_variable.h>
#include <torch/csrc/utils/pybind.h>

#include <optional>

namespace py = pybind11;
using namespace torch_ltc;

namespace {

/// Returns `object[key]`, borrowed; null if `object` isn't a dict or lacks the
/// key.
PyObject *find(PyObject *object, PyObject *key) {
  if (!PyDict_Check(object))
    return nullptr;
  PyObject *value = PyDict_GetItemWithError(object, key);
  if (!value && PyErr_Occurred())
    throw py::error_already_set();
  return value;
}

/// The keys in parameter groups and optimizer states, created once per process
/// and never destroyed.
struct Names {
  PyObject *params = name("params"), *lr = name("lr"), *betas = name("betas"),
           *weightDecay = name("weight_decay"), *eps = name("eps"),
           *decoupled = name("decoupled_weight_decay"),
           *foreach = name("foreach"), *step = name("step"),
           *expAvg = name("exp_avg"), *expAvgSq = name("exp_avg_sq");
  /// If one of these options is on, torch's own implementation runs.
  PyObject *special[4] = {name("amsgrad"), name("maximize"), name("capturable"),
                          name("differentiable")};

  static const Names &get() {
    static const Names names;
    return names;
  }

private:
  static PyObject *name(const char *text) {
    return PyUnicode_InternFromString(text);
  }
};

/// Reads a Python float or int. Returns false for all other objects, including
/// tensors.
bool readNumber(PyObject *object, double &number) {
  if (!object || !(PyFloat_Check(object) || PyLong_Check(object)))
    return false;
  number = PyFloat_AsDouble(object);
  if (number == -1 && PyErr_Occurred())
    throw py::error_already_set();
  return true;
}

bool isOff(PyObject *option) {
  return !option || option == Py_None || option == Py_False;
}

bool readOptions(PyObject *group, AdamOptions &options) {
  const Names &names = Names::get();
  for (PyObject *name : names.special)
    if (!isOff(find(group, name)))
      return false;
  if (find(group, names.foreach) == Py_False)
    return false;
  PyObject *betas = find(group, names.betas);
  if (!betas || !PyTuple_Check(betas) || PyTuple_GET_SIZE(betas) != 2)
    return false;
  options.decoupled = find(group, names.decoupled) == Py_True;
  return readNumber(PyTuple_GET_ITEM(betas, 0), options.beta1) &&
         readNumber(PyTuple_GET_ITEM(betas, 1), options.beta2) &&
         readNumber(find(group, names.lr), options.learningRate) &&
         readNumber(find(group, names.weightDecay), options.weightDecay) &&
         readNumber(find(group, names.eps), options.eps);
}

/// Returns `object[key]`, or an undefined tensor if that isn't a tensor.
at::Tensor tensorAt(PyObject *object, PyObject *key) {
  PyObject *value = find(object, key);
  return value && THPVariable_Check(value) ? THPVariable_Unpack(value)
                                           : at::Tensor();
}

enum class Reading { plain, special, noState };

Reading readEntries(PyObject *parameters, PyObject *states,
                    std::vector<AdamEntry> &entries) {
  const Names &names = Names::get();
  if (!parameters || !PyList_Check(parameters))
    return Reading::special;
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(parameters); ++i) {
    PyObject *object = PyList_GET_ITEM(parameters, i);
    if (!THPVariable_Check(object))
      return Reading::special;
    const at::Tensor &parameter = THPVariable_Unpack(object);
    if (!parameter.device().is_lazy())
      return Reading::special;
    const at::Tensor &gradient = parameter.grad();
    if (!gradient.defined())
      continue;
    PyObject *state = find(states, object);
    if (!state || (PyDict_Check(state) && PyDict_GET_SIZE(state) == 0))
      return Reading::noState;
    entries.push_back({parameter, gradient, tensorAt(state, names.expAvg),
                       tensorAt(state, names.expAvgSq),
                       tensorAt(state, names.step)});
  }
  return Reading::plain;
}

std::optional<bool> adamStep(const py::list &groups, const py::dict &states) {
  std::vector<AdamGroup> steps(groups.size());
  for (size_t i = 0; i < steps.size(); ++i) {
    PyObject *group = groups[i].ptr();
    Reading reading = readEntries(find(group, Names::get().params),
                                  states.ptr(), steps[i].entries);
    if (reading == Reading::noState)
      return std::nullopt;
    if (reading == Reading::special || !readOptions(group, steps[i].options))
      return false;
  }
  ReleasedGil release;
  at::NoGradGuard guard;
  return traceAdamStep(steps);
}

} // namespace

void torch_ltc::bindOptimizers(py::module_ &module) {
  module.def("adam_step", &adamStep, py::arg("param_groups"), py::arg("state"));
}
