//===- module.cpp - The module torch_ltc._C -------------------------------===//

#include "bindings.h"

#include <c10/util/Exception.h>

namespace {

/// Converts torch's errors to Python's, without their C++ backtrace, which is
/// noise for a Python user.
void translateTorchError(std::exception_ptr pointer) {
  auto raise = [](PyObject *type, const c10::Error &error) {
    PyErr_SetString(type, error.what_without_backtrace());
  };
  try {
    if (pointer)
      std::rethrow_exception(pointer);
  } catch (const c10::IndexError &error) {
    raise(PyExc_IndexError, error);
  } catch (const c10::ValueError &error) {
    raise(PyExc_ValueError, error);
  } catch (const c10::TypeError &error) {
    raise(PyExc_TypeError, error);
  } catch (const c10::NotImplementedError &error) {
    raise(PyExc_NotImplementedError, error);
  } catch (const c10::Error &error) {
    raise(PyExc_RuntimeError, error);
  }
}

} // namespace

PYBIND11_MODULE(_C, module) {
  pybind11::register_local_exception_translator(&translateTorchError);
  module.doc() = "Bindings of ltc_backend; see _C.pyi.";
  torch_ltc::bindDevice(module);
  torch_ltc::bindMemory(module);
  torch_ltc::bindOptimizers(module);
  torch_ltc::bindConfig(module);
  torch_ltc::bindMetrics(module);
  torch_ltc::bindDebug(module);
  torch_ltc::bindModuleScopes(module);
  torch_ltc::bindPrograms(module);
  torch_ltc::bindGeneralGraphs(module);
  torch_ltc::bindBackends(module);
  torch_ltc::bindExecutables(module);
  torch_ltc::bindFallback(module);
  torch_ltc::bindCapture(module);
  torch_ltc::bindGuards(module);
  torch_ltc::bindOperands(module);
  torch_ltc::installFrameCapture();
  torch_ltc::installGenerators();
}
