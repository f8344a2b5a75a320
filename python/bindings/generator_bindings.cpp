//===- generator_bindings.cpp - torch.Generator("lazy") -------------------===//
//
// Device lazy gets its random numbers from the CPU's generators, so a generator
// for device lazy is a CPU generator. torch's constructor (2.13) has a fixed
// list of devices with generators, and no hook for other devices.
//
//===----------------------------------------------------------------------===//

#include "bindings.h"

#include <c10/core/Device.h>
#include <torch/csrc/Device.h>
#include <torch/csrc/Generator.h>

namespace {

newfunc torchNew = nullptr;

bool isLazy(PyObject *device) {
  if (THPDevice_Check(device))
    return reinterpret_cast<THPDevice *>(device)->device.is_lazy();
  return PyUnicode_Check(device) &&
         (PyUnicode_CompareWithASCIIString(device, "lazy") == 0 ||
          PyUnicode_CompareWithASCIIString(device, "lazy:0") == 0);
}

/// The new tp_new of torch.Generator: creates a CPU generator for device lazy.
/// Python calls it, so it must not throw C++ exceptions: it uses only Python's
/// C API.
PyObject *newGenerator(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
  PyObject *device = PyTuple_GET_SIZE(args) == 1 ? PyTuple_GET_ITEM(args, 0)
                     : kwargs ? PyDict_GetItemString(kwargs, "device")
                              : nullptr;
  if (!device || !isLazy(device))
    return torchNew(type, args, kwargs);
  PyObject *cpu = Py_BuildValue("(s)", "cpu");
  PyObject *result = cpu ? torchNew(type, cpu, nullptr) : nullptr;
  Py_XDECREF(cpu);
  return result;
}

} // namespace

void torch_ltc::installGenerators() {
  auto *type = reinterpret_cast<PyTypeObject *>(THPGeneratorClass);
  if (torchNew)
    return;
  torchNew = type->tp_new;
  type->tp_new = newGenerator;
}
