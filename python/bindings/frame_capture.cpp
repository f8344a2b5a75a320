//===- frame_capture.cpp - The user's innermost Python frame --------------===//
//
// A frame is the user's unless it runs code of the packages torch and
// torch_ltc, of contextlib.py or of a frozen module, or code that torch.fx
// generated. Each code object is classified once, and each (code, instruction)
// pair is converted to a line once, so that a repeated capture is a few
// lookups.
//
//===----------------------------------------------------------------------===//

#include "bindings.h"
#include "frame_walk.h"

#include "source/source_location.h"

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

namespace {

struct CodeFacts {
  bool isUsers = false;
  std::string file;
  std::unordered_map<int, torch_ltc::LocationId> lines; // by instruction
};

/// Guarded by the GIL. Code objects in the map are kept alive, so that their
/// addresses aren't reused.
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
  if (file.empty())
    return true;
  // Python's frozen modules, and code that torch.fx generates. Other names in
  // angle brackets are a user's code: a cell of a notebook, a line of a shell,
  // a doctest.
  for (const char *prefix : {"<frozen ", "<eval_with_key>"})
    if (file.rfind(prefix, 0) == 0)
      return true;
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

/// Returns the location of an instruction of the user's code; 0 for an
/// instruction of a library. The caller must hold the GIL.
torch_ltc::LocationId locate(PyCodeObject *code, int instruction) {
  CodeFacts &facts = factsOf(code);
  if (!facts.isUsers)
    return 0;
  auto [line, isNew] = facts.lines.try_emplace(instruction, 0);
  if (isNew)
    line->second = torch_ltc::internLocation(
        facts.file, PyCode_Addr2Line(code, instruction));
  return line->second;
}

#if TORCH_LTC_READS_FRAMES

/// A thread's cached results of `locate`, by code and instruction, in a
/// direct-mapped table: a new entry replaces the old one at its place.
class Answers {
public:
  std::optional<torch_ltc::LocationId> find(PyCodeObject *code,
                                            int instruction) const {
    const Answer &answer = answers[placeOf(code, instruction)];
    if (answer.code != code || answer.instruction != instruction)
      return std::nullopt;
    return answer.location;
  }
  void keep(PyCodeObject *code, int instruction,
            torch_ltc::LocationId location) {
    answers[placeOf(code, instruction)] = {code, instruction, location};
  }

private:
  struct Answer {
    PyCodeObject *code = nullptr;
    int instruction = 0;
    torch_ltc::LocationId location = 0;
  };
  static constexpr size_t size = 1024;
  static size_t placeOf(PyCodeObject *code, int instruction) {
    return ((reinterpret_cast<size_t>(code) >> 4) + size_t(instruction) * 31) %
           size;
  }

  std::array<Answer, size> answers;
};

/// The thread's table. Only its address is in static TLS: the table wouldn't
/// fit, and a lookup in another kind of TLS costs as much as the frame walk.
Answers &answersOfThread() {
  static thread_local Answers *table
      __attribute__((tls_model("initial-exec"))) = nullptr;
  if (!table) {
    thread_local std::unique_ptr<Answers> owner;
    owner = std::make_unique<Answers>();
    table = owner.get();
  }
  return *table;
}

/// Returns the location of the innermost frame that is the user's, or 0. Takes
/// the GIL only for instructions that aren't in the thread's table.
torch_ltc::LocationId captureFrames(PyThreadState *thread) {
  Answers &answers = answersOfThread();
  for (auto frame = torch_ltc::PythonFrame::innermost(thread); frame;
       frame = frame.outer()) {
    PyCodeObject *code = frame.code();
    int instruction = frame.instruction();
    std::optional<torch_ltc::LocationId> known =
        answers.find(code, instruction);
    if (!known) {
      pybind11::gil_scoped_acquire gil;
      known = locate(code, instruction);
      answers.keep(code, instruction, *known);
    }
    if (*known)
      return *known;
  }
  return 0;
}

#else

torch_ltc::LocationId captureFrames(PyThreadState *) {
  pybind11::gil_scoped_acquire gil;
  torch_ltc::LocationId result = 0;
  PyFrameObject *frame = PyEval_GetFrame();
  Py_XINCREF(frame);
  while (frame) {
    PyCodeObject *code = PyFrame_GetCode(frame);
    result = locate(code, PyFrame_GetLasti(frame));
    Py_DECREF(code);
    PyFrameObject *outer = result ? nullptr : PyFrame_GetBack(frame);
    Py_DECREF(frame);
    frame = outer;
  }
  return result;
}

#endif

torch_ltc::LocationId capture() {
  if (!Py_IsInitialized())
    return 0;
  // A thread without a Python thread state has no frames, and if it took the
  // GIL, it could deadlock with a thread that holds the GIL and waits for this
  // one.
  PyThreadState *thread = PyGILState_GetThisThreadState();
  if (!thread)
    return 0;
  return captureFrames(thread);
}

} // namespace

void torch_ltc::installFrameCapture() { setFrameCapture(capture); }
