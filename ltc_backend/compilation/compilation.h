//===- compilation.h - One run of the compiler ------------------*- C++ -*-===//

#ifndef TORCH_LTC_COMPILATION_COMPILATION_H
#define TORCH_LTC_COMPILATION_COMPILATION_H

#include "compilation/compiler_library.h"
#include "compilation/dump.h"
#include "events/step_log.h"

namespace torch_ltc {

struct GeneralSamples;

/// What the compiler returns.
struct Compilation {
  LtcBytes executable{};
  LtcCompileStatistics statistics{};
  StageTexts texts;
  Compilation() = default;
  Compilation(const Compilation &) = delete;
  ~Compilation() { ltcBytesDestroy(executable); }
};
using CompilationPtr = std::shared_ptr<Compilation>;

// `compile` and `compileGeneral` throw std::runtime_error if the compilation
// fails. On the main thread they also throw the exception that a signal handler
// raises; the compiler then continues in the background.

/// Compiles the graph; if `withTexts`, also stores the text of each stage.
/// After a failure, `result` has the texts of the stages before the failed one.
void compile(const GraphSnapshot &graph, bool withTexts,
             const CompilationPtr &result);
/// Compiles the samples of a general graph to one executable for all sizes.
void compileGeneral(const std::shared_ptr<const GeneralSamples> &samples,
                    const CompilationPtr &result);

/// Counts a compilation in the metrics, and adds its statistics to `event`.
void noteStatistics(const LtcCompileStatistics &statistics,
                    CompileEvent &event);

} // namespace torch_ltc

#endif // TORCH_LTC_COMPILATION_COMPILATION_H
