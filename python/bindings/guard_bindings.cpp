//===- guard_bindings.cpp - Guards of captured steps ----------------------===//
//
// Before each replay, compares the modes of PyTorch that affect ops, and the
// objects that the function's code refers to (_capture/objects.py lists them),
// with those of the recording. Objects are compared by identity, except for
// floats, ints, strings, bytes, and the contents of sets, deques and buffers.
//
//===----------------------------------------------------------------------===//

#include "bindings.h"

#include "config/config.h"

#include <ATen/Context.h>
#include <ATen/PythonTorchFunctionTLS.h>
#include <ATen/SavedTensorHooks.h>
#include <ATen/autocast_mode.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <c10/core/impl/TorchDispatchModeTLS.h>
#include <torch/csrc/PyInterpreter.h>
#include <torch/csrc/autograd/anomaly_mode.h>
#include <torch/csrc/autograd/python_variable.h>
#include <torch/csrc/utils/pybind.h>

#include <cstring>

namespace py = pybind11;
using namespace torch_ltc;

namespace {

/// The values are the same as in _capture/objects.py.
enum Kind { Dict, Items, List, Cell, Attribute, Probe, Tensor, Held };

struct Marks {
  PyObject *ignored, *absent;
};

const Marks &marks() {
  static const Marks objects{
      PyObject_CallNoArgs(reinterpret_cast<PyObject *>(&PyBaseObject_Type)),
      PyObject_CallNoArgs(reinterpret_cast<PyObject *>(&PyBaseObject_Type))};
  return objects;
}

/// Whether `a` and `b` are the same object, or equal floats (bit by bit), ints,
/// strings or bytes. Runs no code of the user.
bool isSame(PyObject *a, PyObject *b) {
  if (a == b)
    return true;
  if (Py_TYPE(a) != Py_TYPE(b))
    return false;
  if (PyFloat_CheckExact(a)) {
    double x = PyFloat_AS_DOUBLE(a), y = PyFloat_AS_DOUBLE(b);
    return std::memcmp(&x, &y, sizeof(x)) == 0;
  }
  if (PyLong_CheckExact(a) || PyUnicode_CheckExact(a) || PyBytes_CheckExact(a))
    return PyObject_RichCompareBool(a, b, Py_EQ) == 1;
  return false;
}

bool matches(PyObject *value, PyObject *expected) {
  return expected == marks().ignored || isSame(value, expected);
}

bool isSameDict(PyObject *dict, PyObject *keys, PyObject *values) {
  if (PyDict_GET_SIZE(dict) != PyTuple_GET_SIZE(keys))
    return false;
  Py_ssize_t place = 0, number = 0;
  PyObject *key, *value;
  for (; PyDict_Next(dict, &place, &key, &value); ++number)
    if (!isSame(key, PyTuple_GET_ITEM(keys, number)) ||
        !matches(value, PyTuple_GET_ITEM(values, number)))
      return false;
  return true;
}

bool haveSameItems(PyObject *owner, PyObject *keys, PyObject *values) {
  PyObject *dict = PyType_Check(owner)
                       ? reinterpret_cast<PyTypeObject *>(owner)->tp_dict
                       : owner;
  if (!dict)
    return true;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(keys); ++i) {
    PyObject *value =
        PyDict_GetItemWithError(dict, PyTuple_GET_ITEM(keys, i)); // borrowed
    PyObject *expected = PyTuple_GET_ITEM(values, i);
    if (value ? !matches(value, expected) : expected != marks().absent)
      return false;
  }
  return true;
}

bool isSameList(PyObject *list, PyObject *values) {
  if (PyList_GET_SIZE(list) != PyTuple_GET_SIZE(values))
    return false;
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list); ++i)
    if (!matches(PyList_GET_ITEM(list, i), PyTuple_GET_ITEM(values, i)))
      return false;
  return true;
}

bool isSameAttribute(PyObject *owner, PyObject *name, PyObject *expected) {
  PyObject *value = PyObject_GetAttr(owner, name);
  if (!value) {
    PyErr_Clear();
    return expected == marks().absent;
  }
  bool same = matches(value, expected);
  Py_DECREF(value);
  return same;
}

bool givesTheSame(PyObject *owner, PyObject *function, PyObject *expected) {
  PyObject *value = PyObject_CallOneArg(function, owner);
  int same = value ? PyObject_RichCompareBool(value, expected, Py_EQ) : 0;
  Py_XDECREF(value);
  if (PyErr_Occurred())
    PyErr_Clear();
  return same == 1;
}

Py_ssize_t numHooks(const THPVariable *tensor) {
  Py_ssize_t count = 0;
  for (PyObject *hooks :
       {tensor->backward_hooks, tensor->post_accumulate_grad_hooks})
    if (hooks && PyDict_Check(hooks))
      count += PyDict_GET_SIZE(hooks);
  return count;
}

/// Returns the version counter of a CPU tensor, whose contents are constants of
/// the captured step. Returns -1 for inference tensors, which have no version
/// counter, and for lazy tensors, whose contents each replay reads.
int64_t versionOf(const at::Tensor &tensor) {
  return tensor.is_cpu() && !tensor.is_inference() ? tensor._version() : -1;
}

const at::Tensor &gradientOf(const at::Tensor &tensor) {
  static const at::Tensor none;
  return tensor.is_leaf() ? tensor.grad() : none;
}

/// Returns (requires_grad, version, gradient or None, number of hooks).
py::tuple tensorMarks(const at::Tensor &tensor) {
  py::object object = py::cast(tensor);
  py::object gradient = py::none();
  if (gradientOf(tensor).defined())
    gradient = py::cast(gradientOf(tensor));
  return py::make_tuple(
      tensor.requires_grad(), versionOf(tensor), gradient,
      numHooks(reinterpret_cast<THPVariable *>(object.ptr())));
}

bool isSameTensor(PyObject *object, PyObject *values) {
  auto number = [&](Py_ssize_t i) {
    return PyLong_AsLongLong(PyTuple_GET_ITEM(values, i));
  };
  const at::Tensor &tensor = THPVariable_Unpack(object);
  if (tensor.requires_grad() != (PyTuple_GET_ITEM(values, 0) == Py_True) ||
      versionOf(tensor) != number(1) ||
      numHooks(reinterpret_cast<THPVariable *>(object)) != number(3))
    return false;
  const at::Tensor &gradient = gradientOf(tensor);
  PyObject *expected = PyTuple_GET_ITEM(values, 2);
  if (expected == marks().ignored)
    return true;
  if (expected == Py_None || !gradient.defined())
    return expected == Py_None && !gradient.defined();
  return gradient.is_same(THPVariable_Unpack(expected));
}

bool isUnchanged(PyObject *node) {
  PyObject *owner = PyTuple_GET_ITEM(node, 1);
  PyObject *keys = PyTuple_GET_ITEM(node, 2);
  PyObject *values = PyTuple_GET_ITEM(node, 3);
  switch (PyLong_AsLong(PyTuple_GET_ITEM(node, 0))) {
  case Dict:
    return isSameDict(owner, keys, values);
  case Items:
    return haveSameItems(owner, keys, values);
  case List:
    return isSameList(owner, values);
  case Cell: {
    PyObject *content = PyCell_GET(owner);
    PyObject *expected = PyTuple_GET_ITEM(values, 0);
    return content ? matches(content, expected) : expected == marks().absent;
  }
  case Attribute:
    return isSameAttribute(owner, keys, PyTuple_GET_ITEM(values, 0));
  case Probe:
    return givesTheSame(owner, keys, PyTuple_GET_ITEM(values, 0));
  case Tensor:
    return isSameTensor(owner, values);
  case Held: // no new holder
    return Py_REFCNT(owner) <= PyLong_AsLong(PyTuple_GET_ITEM(values, 0));
  }
  return false;
}

/// Returns the index of the first node that has changed, or -1.
Py_ssize_t firstChanged(const py::tuple &nodes) {
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(nodes.ptr()); ++i)
    if (!isUnchanged(PyTuple_GET_ITEM(nodes.ptr(), i)))
      return i;
  return -1;
}

/// Whether a transform of torch.func is active.
bool isTransformed() {
  return c10::impl::tls_is_dispatch_key_included(
      c10::DispatchKey::FuncTorchDynamicLayerFrontMode);
}

/// Returns, as bytes for comparison, the modes of PyTorch and the options that
/// affect which ops a function traces.
py::bytes surroundings() {
  auto &context = at::globalContext();
  std::string text;
  auto add = [&text](auto value) {
    text.append(reinterpret_cast<const char *>(&value), sizeof(value));
  };
  add(c10::AutogradState::get_tls_state().get_grad_mode());
  add(c10::AutogradState::get_tls_state().get_inference_mode());
  add(c10::get_default_dtype_as_scalartype());
  // Device lazy uses HPU's autocast (_torch_patches/autocast.py).
  for (auto device : {c10::kCPU, c10::kHPU}) {
    add(at::autocast::is_autocast_enabled(device));
    add(at::autocast::get_autocast_dtype(device));
  }
  add(at::autocast::is_autocast_cache_enabled());
  add(context.deterministicAlgorithms());
  add(context.deterministicFillUninitializedMemory());
  add(context.userEnabledFlashSDP());
  add(context.userEnabledMemEfficientSDP());
  add(context.userEnabledMathSDP());
  add(torch::autograd::AnomalyMode::is_enabled());
  add(isTransformed());
  add(at::SavedTensorDefaultHooks::get_tls_state().stack.size());
  add(c10::impl::TorchDispatchModeTLS::stack_len());
  for (int64_t i = 0; i < at::impl::PythonTorchFunctionTLS::stack_len(); ++i)
    add(at::impl::PythonTorchFunctionTLS::get_stack_at(i)->ptr(
        getPyInterpreter()));
  text += optionsWithEffect(OptionEffect::Trace);
  return py::bytes(text);
}

} // namespace

void torch_ltc::bindGuards(py::module_ &module) {
  module.def("capture_marks", [] {
    return py::make_tuple(py::reinterpret_borrow<py::object>(marks().ignored),
                          py::reinterpret_borrow<py::object>(marks().absent));
  });
  module.def("tensor_marks", &tensorMarks, py::arg("tensor"));
  module.def("first_changed", &firstChanged, py::arg("nodes"));
  module.def("surroundings", &surroundings);
  // Functions aren't captured under a dispatch mode or a transform.
  module.def("is_under_a_dispatch_mode", [] {
    return c10::impl::TorchDispatchModeTLS::stack_len() > 0 || isTransformed();
  });
}
