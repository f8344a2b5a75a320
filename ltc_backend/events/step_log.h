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
  int64_t step = 0;    // number of the step that needed the program, from 1
  std::string origin;  // "compiled", "disk", "interpreted", "bound", "rejected"
  std::string reason;  // without its beginning, which `difference` returns
  /// Returns the beginning of the reason: what distinguishes the program from
  /// the most similar one. May be null. Comparing programs takes longer than
  /// the rest of a new program's step, so it is postponed until the reason is
  /// read.
  std::function<std::string()> difference;
  std::string location;
  double seconds = 0;
  double expectedSeconds = 0; // estimated before the compilation
  double torchSeconds = 0, linalgSeconds = 0, kernelsSeconds = 0,
         llvmSeconds = 0;
  int64_t ops = 0, kernels = 0, kernelsCompiled = 0, commands = 0;
  int64_t parameters = 0, outputs = 0, arenaBytes = 0;
  std::string dumpDirectory;
  /// Named parameters whose new value is written to new memory, and why their
  /// old memory couldn't be reused.
  std::vector<std::pair<std::string, std::string>> undonated;
  /// Numbers that became dynamic scalars of the program, such as "start of
  /// aten::slice_copy.Tensor at train.py:31".
  std::vector<std::string> varying;
  /// With option varying_sizes, sizes that differ from those of earlier
  /// programs with the same ops, such as "s0 = size 1 of parameter 3 (ids), 16
  /// to 128".
  std::vector<std::string> sizes;
};

/// The complete reason: the result of `difference`, then `reason`.
std::string reasonOf(const CompileEvent &event);

/// An execution of a program.
struct StepEvent {
  int64_t step = 0;
  std::string program;
  /// "memory", "disk", "compiled", "interpreted", "bound" or "captured"
  std::string origin;
  std::string trigger; // "mark_step" | "sync" | "cut" | "capture"
  int64_t ops = 0;
  double scheduleSeconds = 0;
  double executeSeconds = -1; // -1 while the step runs
  int64_t donated = 0;
  double time = 0; // when the step was scheduled, in seconds since 1970
  int64_t liveTensors = 0, allocatedBytes = 0; // at that time
};

/// Records that a number becomes a dynamic scalar of the thread's next new
/// program.
void noteVaryingNumber(std::string text);
/// Returns and clears the numbers recorded since the thread's last new program.
std::vector<std::string> takeVaryingNumbers();

void addCompileEvent(CompileEvent event);
/// The program's last event; an empty one if the log has none.
CompileEvent compileEventOf(const std::string &program);
/// Records the folder of a dump that was written after the compilation.
void setDumpDirectory(const std::string &program, const std::string &path);
/// Records why parameters of a new program aren't overwritten in place.
void setUndonated(const std::string &program,
                  std::vector<std::pair<std::string, std::string>> undonated);
/// Adds an event. Returns its number, for `finishStepEvent`.
uint64_t addStepEvent(StepEvent event);
void finishStepEvent(uint64_t number, double executeSeconds);

/// The last 1024 events, oldest first.
std::vector<CompileEvent> compileEvents();
std::vector<StepEvent> stepEvents();
void clearStepLogs();

} // namespace torch_ltc

#endif // TORCH_LTC_EVENTS_STEP_LOG_H
