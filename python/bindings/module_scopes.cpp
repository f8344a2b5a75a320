//===- module_scopes.cpp - The module whose call an op belongs to ---------===//
//
// _torch_patches/naming.py calls these functions before and after each module's
// call: for every module of every step that is traced with source_info.
//
//===----------------------------------------------------------------------===//

#include "bindings.h"

#include "source/source_location.h"

#include <string>
#include <unordered_map>

namespace py = pybind11;
using namespace torch_ltc;

namespace {

/// State of one thread. Used with the GIL, and never destroyed: when a thread
/// ends it may be too late to release a reference.
struct Scopes {
  size_t depth = 0;
  PyObject *root = nullptr; // weak reference to the last outermost module
  std::unordered_map<PyObject *, std::string> paths; // its modules
};

Scopes &scopesOfThread() {
  static thread_local Scopes *scopes = nullptr;
  if (!scopes)
    scopes = new Scopes;
  return *scopes;
}

/// Python's `paths_below(root)`: a path for each module, and a name for each
/// parameter.
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
  // Added after the first call, or called by the root without being its child.
  PyObject *root = scopes.root ? PyWeakref_GetObject(scopes.root) : Py_None;
  if (root != Py_None)
    learnPaths(scopes, py::reinterpret_borrow<py::object>(root));
  auto [entry, isNew] = scopes.paths.try_emplace(module);
  if (isNew)
    entry->second = Py_TYPE(module)->tp_name;
  return entry->second;
}

/// Leaves no module entered if it fails.
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
  // No module to leave: source_info was switched off inside the call.
  if (scopes.depth) {
    --scopes.depth;
    popModulePath();
  }
  Py_RETURN_NONE;
}

/// Leaves the modules of the calling thread. Called when source_info was
/// switched off inside a call.
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
