//===- bindings.h - Parts of the module torch_ltc._C ------------*- C++ -*-===//
//
// python/torch_ltc/_C.pyi documents each function.
//
//===----------------------------------------------------------------------===//

#ifndef TORCH_LTC_PYTHON_BINDINGS_H
#define TORCH_LTC_PYTHON_BINDINGS_H

#include <pybind11/pybind11.h>

namespace torch_ltc {

void bindDevice(pybind11::module_ &module);
void bindMemory(pybind11::module_ &module);
void bindOptimizers(pybind11::module_ &module);
void bindConfig(pybind11::module_ &module);
void bindMetrics(pybind11::module_ &module);
void bindDebug(pybind11::module_ &module);
void bindModuleScopes(pybind11::module_ &module);
void bindPrograms(pybind11::module_ &module);
void bindGeneralGraphs(pybind11::module_ &module);
void bindBackends(pybind11::module_ &module);
void bindExecutables(pybind11::module_ &module);
void bindFallback(pybind11::module_ &module);
void bindCapture(pybind11::module_ &module);
void bindGuards(pybind11::module_ &module);
void bindOperands(pybind11::module_ &module);

/// Makes torch.Generator accept device lazy.
void installGenerators();

/// Installs the function that finds the user's Python line.
void installFrameCapture();

} // namespace torch_ltc

#endif // TORCH_LTC_PYTHON_BINDINGS_H
