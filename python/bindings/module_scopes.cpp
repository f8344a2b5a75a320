//===- module_scopes.cpp - The module whose call an op belongs to ---------===//
//
// With source_info, _torch_patches/naming.py calls these functions before and
// after the call of every module in every traced step.
//
//===----------------------------------------------------------------------===//

#include "bindings.h"

#include "source/source_location.h"

#include <string>
#include <unordered_map>

namespace py = pybind11;
using namespace torch_ltc;

namespace {

/// State of one thread. It is used with the GIL held, and never destroyed: when
/// a thread ends, it may be too late to release a reference.
struct Scopes {
  size_t depth = 0;
  PyObject *root = nullptr; // weak reference to the last outermost module
  std::unordered_map<PyObject *, std::string> paths; // of the root's modules
};

Scopes &scopesOfThread() {
  static thread_local Scopes *scopes = nullptr;
  if (!scopes)
    scopes = new Scopes;
  return *scopes;
}

/// The Python function `paths_below(root)`: names the root's parameters and
/// returns the path of each module.
PyObject *pathsBelow = nullptr;

void learnPaths(Scopes &scopes, py::handle root) {
  py::dict paths = py::reinterpret_borrow<py::object>(pathsBelow)(root);
  scopes.paths.clear();
  for (const auto &[module, path] : paths)
    scopes.paths[module.ptr()] = path.cast<std::string>();
}

const std::string &pathOf(Scopes &scopes, PyObject *module) {
  if (scopes.depth == 0) {
    if (!scopes.root || PyWeakref_GetObject(scopes.root) != module) {
      learnPaths(scopes, module);
      Py_XDECREF(scopes.root);
      scopes.root = PyWeakref_NewRef(module, nullptr);
      if (!scopes.root)
        throw py::error_already_set();
    }
  }
  auto known = scopes.paths.find(module);
  if (known != scopes.paths.end())
    return known->second;
  // Learn the paths again, because the module may have been added after the
  // root's first call. A module that isn't below the root gets its class's name
  // as path.
  PyObject *root = scopes.root ? PyWeakref_GetObject(scopes.root) : Py_None;
  if (root != Py_None)
    learnPaths(scopes, py::reinterpret_borrow<py::object>(root));
  auto [entry, isNew] = scopes.paths.try_emplace(module);
  if (isNew)
    entry->second = Py_TYPE(module)->tp_name;
  return entry->second;
}

/// Pushes the path of `module`; if that fails, the module isn't entered.
PyObject *enterModule(PyObject *, PyObject *module) {
  try {
    Scopes &scopes = scopesOfThread();
    pushModulePath(pathOf(scopes, module));
    ++scopes.depth;
  } catch (py::error_already_set &error) {
    error.restore();
    return nullptr;
  }
  Py_RETURN_NONE;
}

PyObject *leaveModule(PyObject *, PyObject *) {
  Scopes &scopes = scopesOfThread();
  // If source_info was switched off inside the call, depth is already 0.
  if (scopes.depth) {
    --scopes.depth;
    popModulePath();
  }
  Py_RETURN_NONE;
}

/// Leaves all modules of the calling thread, after source_info was switched off
/// inside a call.
void leaveAllModules() {
  Scopes &scopes = scopesOfThread();
  for (; scopes.depth; --scopes.depth)
    popModulePath();
}

// Python's own table of functions, because pybind11's dispatch costs more than
// the functions themselves.
PyMethodDef functions[] = {{"enter_module", enterModule, METH_O, nullptr},
                           {"leave_module", leaveModule, METH_NOARGS, nullptr},
                           {nullptr, nullptr, 0, nullptr}};

} // namespace

void torch_ltc::bindModuleScopes(py::module_ &module) {
  if (PyModule_AddFunctions(module.ptr(), functions) != 0)
    throw py::error_already_set();
  module.def("leave_all_modules", &leaveAllModules);
  module.def("set_paths_below", [](py::function function) {
    Py_XDECREF(pathsBelow);
    pathsBelow = function.release().ptr();
  });
}
