//===- step_log.h - Log of compilations and executions ----------*- C++ -*-===//

#ifndef TORCH_LTC_EVENTS_STEP_LOG_H
#define TORCH_LTC_EVENTS_STEP_LOG_H

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace torch_ltc {

/// A miss of the in-memory program cache.
struct CompileEvent {
  std::string program; // hash, hexadecimal
  int64_t step = 0;    // number of the step that needed it, from 1
  std::string origin;  // "compiled" | "disk" | "interpreted"
  std::string reason;  // for an interpreted program: why it isn't compiled
  /// Makes the beginning of the reason, unless empty: what distinguishes the
  /// program from the nearest one. Comparing programs takes longer than the
  /// rest of a new program's step, so it is done when somebody reads the
  /// reason.
  std::function<std::string()> difference;
  std::string location;
  double seconds = 0;
  double expectedSeconds = 0; // of the compilation, before it began
  double torchSeconds = 0, linalgSeconds = 0, kernelsSeconds = 0,
         llvmSeconds = 0;
  int64_t ops = 0, kernels = 0, kernelsCompiled = 0, commands = 0;
  int64_t parameters = 0, outputs = 0, arenaBytes = 0;
  std::string dumpDirectory;
  /// Named parameters that are written to new memory although the program
  /// doesn't need their old value afterwards, and why their memory couldn't be
  /// reused.
  std::vector<std::pair<std::string, std::string>> undonated;
  /// Numbers that became parameters of it: "start of aten::slice_copy.Tensor at
  /// train.py:31".
  std::vector<std::string> varying;
  /// Sizes that differ from those of earlier programs of the same ops, with
  /// option varying_sizes: "s0 = size 1 of parameter 3 (ids), 16 to 128".
  std::vector<std::string> sizes;
};

/// The whole reason.
std::string reasonOf(const CompileEvent &event);

/// One execution.
struct StepEvent {
  int64_t step = 0;
  std::string program;
  /// "memory" | "disk" | "compiled" | "interpreted" | "captured"
  std::string origin;
  std::string trigger; // "mark_step" | "sync" | "cut" | "capture"
  int64_t ops = 0;
  double scheduleSeconds = 0;
  double executeSeconds = -1; // while it runs
  int64_t donated = 0;
  double time = 0; // seconds since 1970 when it was scheduled
  int64_t liveTensors = 0, allocatedBytes = 0; // when it finished, likewise
};

/// Records that a number becomes a parameter of the thread's next new program.
void noteVaryingNumber(std::string text);
/// Those since the thread's last new program.
std::vector<std::string> takeVaryingNumbers();

void addCompileEvent(CompileEvent event);
/// The program's last event; an empty one if the log has none.
CompileEvent compileEventOf(const std::string &program);
/// Records where a program was dumped after it was compiled.
void setDumpDirectory(const std::string &program, const std::string &path);
/// Records why parameters of a new program aren't overwritten in place.
void setUndonated(const std::string &program,
                  std::vector<std::pair<std::string, std::string>> undonated);
/// Returns the number by which `finishStepEvent` finds the event again.
uint64_t addStepEvent(StepEvent event);
void finishStepEvent(uint64_t number, double executeSeconds);

/// Oldest first; the last 1024.
std::vector<CompileEvent> compileEvents();
std::vector<StepEvent> stepEvents();
void clearStepLogs();

} // namespace torch_ltc

#endif // TORCH_LTC_EVENTS_STEP_LOG_H
