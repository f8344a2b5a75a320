//===- metrics_bindings.cpp - Counters, logs, caches ----------------------===//

#include "bindings.h"
#include "released_gil.h"

#include "compilation/disk_cache.h"
#include "compilation/general_programs.h"
#include "config/config.h"
#include "config/log.h"
#include "events/call_log.h"
#include "events/guards.h"
#include "events/metrics.h"
#include "events/step_log.h"
#include "graph/live_tensors.h"
#include "memory/buffer.h"
#include "programs/program_cache.h"

#include "torch_ltc-c/runtime.h"

#include <unistd.h>

#include <filesystem>

namespace py = pybind11;
using namespace torch_ltc;

namespace {

py::dict counters() {
  py::dict result;
  for (const auto &[name, value] : counterValues())
    result[py::str(name)] = value;
  return result;
}

py::dict timers() {
  py::dict result;
  for (const auto &[name, value] : timerValues()) {
    py::dict row;
    row["count"] = value.count;
    row["total"] = value.total;
    row["last"] = value.last;
    row["median"] = value.median;
    row["p90"] = value.p90;
    result[py::str(name)] = std::move(row);
  }
  return result;
}

py::list fallbacks() {
  py::list result;
  for (const CallLogRow &row : fallbackLog().rows()) {
    py::dict entry;
    entry["op"] = row.op;
    entry["location"] = row.location;
    entry["calls"] = row.calls;
    entry["seconds"] = row.seconds;
    entry["bytes"] = row.bytes;
    entry["syncs"] = row.syncs;
    entry["reason"] = row.reason;
    result.append(std::move(entry));
  }
  return result;
}

py::list syncs() {
  py::list result;
  for (const CallLogRow &row : syncLog().rows()) {
    py::dict entry;
    entry["op"] = row.op;
    entry["location"] = row.location;
    entry["calls"] = row.calls;
    entry["seconds"] = row.seconds;
    entry["ops"] = row.ops;
    result.append(std::move(entry));
  }
  return result;
}

py::list compiles() {
  py::list result;
  for (const CompileEvent &event : compileEvents()) {
    py::dict stages;
    stages["torch"] = event.torchSeconds;
    stages["linalg"] = event.linalgSeconds;
    stages["kernels"] = event.kernelsSeconds;
    stages["llvm"] = event.llvmSeconds;
    py::dict entry;
    entry["program"] = event.program;
    entry["step"] = event.step;
    entry["origin"] = event.origin;
    entry["reason"] = reasonOf(event);
    entry["location"] = event.location;
    entry["seconds"] = event.seconds;
    entry["expected_seconds"] = event.expectedSeconds;
    entry["stage_seconds"] = std::move(stages);
    entry["ops"] = event.ops;
    entry["kernels"] = event.kernels;
    entry["kernels_compiled"] = event.kernelsCompiled;
    entry["commands"] = event.commands;
    entry["parameters"] = event.parameters;
    entry["outputs"] = event.outputs;
    entry["arena_bytes"] = event.arenaBytes;
    entry["dump_directory"] = event.dumpDirectory;
    py::list undonated;
    for (const auto &[name, reason] : event.undonated)
      undonated.append(py::make_tuple(name, reason));
    entry["undonated"] = std::move(undonated);
    entry["varying"] = event.varying;
    entry["sizes"] = event.sizes;
    result.append(std::move(entry));
  }
  return result;
}

py::list steps() {
  py::list result;
  for (const StepEvent &event : stepEvents()) {
    py::dict entry;
    entry["step"] = event.step;
    entry["program"] = event.program;
    entry["origin"] = event.origin;
    entry["trigger"] = event.trigger;
    entry["ops"] = event.ops;
    entry["schedule_seconds"] = event.scheduleSeconds;
    entry["execute_seconds"] = event.executeSeconds;
    entry["donated"] = event.donated;
    entry["time"] = event.time;
    entry["live_tensors"] = event.liveTensors;
    entry["allocated_bytes"] = event.allocatedBytes;
    result.append(std::move(entry));
  }
  return result;
}

/// Returns `folder` if it exists, and otherwise its innermost existing parent.
std::filesystem::path existingFolder(std::filesystem::path folder) {
  std::error_code ignored;
  while (!std::filesystem::exists(folder, ignored) &&
         folder.has_parent_path() && folder != folder.parent_path())
    folder = folder.parent_path();
  return folder;
}

py::dict cacheInfo(bool open) {
  CacheDescription cache = describeCache(open);
  std::string problem = cache.problem;
  if (problem.empty() && !cache.directory.empty() &&
      ::access(existingFolder(cache.directory).c_str(), W_OK) != 0)
    problem = "'" + cache.directory + "' can't be written";
  py::dict result;
  result["directory"] = cache.directory;
  result["writable"] = !cache.directory.empty() && problem.empty();
  result["problem"] = problem;
  result["bytes"] = cache.statistics.disk_bytes;
  result["max_bytes"] = cache.maxBytes;
  result["memory_hits"] = cache.statistics.memory_hits;
  result["disk_hits"] = cache.statistics.disk_hits;
  result["misses"] = cache.statistics.misses;
  result["stores"] = cache.statistics.stores;
  result["evictions"] = cache.statistics.evictions;
  result["rejected"] = cache.statistics.rejected;
  return result;
}

py::dict memoryStats() {
  MemoryStatistics memory = memoryPool().values();
  py::dict result;
  result["allocated_bytes"] = memory.allocated;
  result["peak_allocated_bytes"] = memory.peak;
  result["cached_bytes"] = memory.cached;
  result["arena_bytes"] = ltcArenaPoolBytes();
  result["packed_weight_bytes"] = ltcPackedWeightBytes();
  result["live_tensors"] = numLiveTensors();
  result["pending_ops"] = int64_t(LiveSet::ofThisThread()->numPending());
  return result;
}

int raiseNow(void *exception) {
  auto *value = static_cast<PyObject *>(exception);
  PyErr_SetObject(reinterpret_cast<PyObject *>(Py_TYPE(value)), value);
  Py_DECREF(value);
  return -1;
}

/// Raises the log hook's exception once the main thread is back in Python,
/// because a step in C++ can't be interrupted; on another thread, only reports
/// it as unraisable. The hook propagates only exceptions of signal handlers
/// (KeyboardInterrupt) that Python has called during the hook.
void raiseInPython(py::error_already_set &error) {
  PyObject *value = error.value().inc_ref().ptr();
  if (gettid() != getpid() || Py_AddPendingCall(raiseNow, value) != 0) {
    Py_DECREF(value);
    error.discard_as_unraisable("torch_ltc's log hook");
  }
}

void setHook(const py::object &hook) {
  if (hook.is_none()) {
    ReleasedGil noGil;
    setLogHook({});
    return;
  }
  // Any thread may release the last reference, so the deleter takes the GIL.
  std::shared_ptr<py::object> function(new py::object(hook), [](py::object *o) {
    if (!Py_IsInitialized())
      return; // the interpreter has already destroyed it
    py::gil_scoped_acquire gil;
    delete o;
  });
  ReleasedGil noGil;
  setLogHook([function](LogLevel level, const std::string &sentence) {
    if (!Py_IsInitialized())
      return;
    py::gil_scoped_acquire gil;
    try {
      (*function)(int(level), sentence);
    } catch (py::error_already_set &error) {
      raiseInPython(error);
    }
  });
}

Forbidden guardKind(const std::string &kind) {
  if (kind == "sync")
    return Forbidden::sync;
  if (kind == "fallback")
    return Forbidden::fallback;
  if (kind == "recompile")
    return Forbidden::recompile;
  throw py::value_error("There is no guard against '" + kind + "'.");
}

} // namespace

void torch_ltc::bindMetrics(py::module_ &module) {
  module.def("counters", &counters);
  module.def("timers", &timers);
  module.def("fallback_log", &fallbacks);
  module.def("sync_log", &syncs);
  module.def("compile_log", &compiles);
  module.def("step_log", &steps);
  module.def("reset_metrics", [] {
    resetMetricValues();
    fallbackLog().clear();
    syncLog().clear();
    clearStepLogs();
  });
  module.def("cache_info", &cacheInfo, py::arg("open") = false);
  module.def("clear_program_cache", [] {
    ReleasedGil noGil;
    clearPrograms();
    GeneralPrograms::get().clear();
    memoryPool().release();
  });
  module.def("memory_stats", &memoryStats);
  module.def("reset_peak_memory_stats", [] { memoryPool().resetPeak(); });
  module.def("set_log_hook", &setHook);
  module.def("enter_guard",
             [](const std::string &kind) { enterGuard(guardKind(kind)); });
  module.def("leave_guard",
             [](const std::string &kind) { leaveGuard(guardKind(kind)); });
}
