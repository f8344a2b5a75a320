//===- frame_capture.cpp - The user's innermost Python frame --------------===//
//
// A frame is the user's if its file is neither in the package torch nor in
// torch_ltc. Code objects are classified once, and (code, instruction) pairs
// are turned into lines once, so that a repeated capture is a few lookups.
//
//===----------------------------------------------------------------------===//

#include "bindings.h"

#include "source/source_location.h"

#include <string>
#include <unordered_map>
#include <vector>

namespace {

struct CodeFacts {
  bool isUsers = false;
  std::string file;
  std::unordered_map<int, torch_ltc::LocationId> lines; // by instruction
};

/// Guarded by the GIL. Code objects in the map are kept alive, so that an
/// address never means another one.
std::unordered_map<PyCodeObject *, CodeFacts> &knownCode() {
  static auto *map = new std::unordered_map<PyCodeObject *, CodeFacts>;
  return *map;
}

/// Folders of the packages whose frames aren't the user's.
std::vector<std::string> libraryFolders() {
  std::vector<std::string> folders;
  pybind11::dict modules = pybind11::module_::import("sys").attr("modules");
  for (const char *name : {"torch", "torch_ltc"})
    if (modules.contains(name) && pybind11::hasattr(modules[name], "__path__"))
      for (pybind11::handle path : modules[name].attr("__path__"))
        folders.push_back(path.cast<std::string>() + "/");
  return folders;
}

bool isLibraryFile(const std::string &file) {
  if (file.empty() || file[0] == '<') // "<frozen importlib>"
    return file != "<string>" && file != "<stdin>";
  static const std::vector<std::string> folders = libraryFolders();
  for (const std::string &folder : folders)
    if (file.rfind(folder, 0) == 0)
      return true;
  return file.find("/contextlib.py") != std::string::npos;
}

CodeFacts &factsOf(PyCodeObject *code) {
  auto [entry, isNew] = knownCode().try_emplace(code);
  if (isNew) {
    Py_INCREF(code);
    const char *file = PyUnicode_AsUTF8(code->co_filename);
    if (!file)
      PyErr_Clear();
    entry->second.file = file ? file : "";
    entry->second.isUsers = !isLibraryFile(entry->second.file);
  }
  return entry->second;
}

torch_ltc::LocationId capture() {
  if (!Py_IsInitialized())
    return 0;
  // Not a thread of Python: nothing to find, and taking the GIL may deadlock
  // with a thread that waits for us.
  if (!PyGILState_GetThisThreadState())
    return 0;
  pybind11::gil_scoped_acquire gil;
  torch_ltc::LocationId result = 0;
  PyFrameObject *frame = PyEval_GetFrame();
  Py_XINCREF(frame);
  while (frame) {
    PyCodeObject *code = PyFrame_GetCode(frame);
    CodeFacts &facts = factsOf(code);
    if (facts.isUsers) {
      auto [line, isNew] = facts.lines.try_emplace(PyFrame_GetLasti(frame), 0);
      if (isNew)
        line->second =
            torch_ltc::internLocation(facts.file, PyFrame_GetLineNumber(frame));
      result = line->second;
    }
    Py_DECREF(code);
    PyFrameObject *outer = result ? nullptr : PyFrame_GetBack(frame);
    Py_DECREF(frame);
    frame = outer;
  }
  return result;
}

} // namespace

void torch_ltc::installFrameCapture() { setFrameCapture(capture); }
