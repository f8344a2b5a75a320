//===- generator_bindings.cpp - torch.Generator("lazy") -------------------===//
//
// Random numbers of device lazy are the CPU's, from the CPU's generators, so a
// generator of this device is one of the CPU. torch's constructor knows the
// devices that have generators (2.13), and there is no hook for others.
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

/// Python calls it: no C++ exceptions, so Python's C API alone.
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
