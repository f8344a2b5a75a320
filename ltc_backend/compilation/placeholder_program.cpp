//===- placeholder_program.cpp - Until the program is compiled ------------===//

#include "compilation/placeholder_program.h"

using namespace torch_ltc;

namespace {

/// Of the expected time of compilation that runs op by op may take before it.
/// Compilation has a thread of its own, so waiting longer mostly loses steps.
constexpr double kShare = 0.25;

/// Seconds to load the compiler, and for each op of a new program.
constexpr double kSecondsToBegin = 0.05;
constexpr double kSecondsPerOp = 1.5e-3;

/// What compilations took here, relative to the constants above.
std::atomic<double> observedFactor{1};

double expectedSeconds(size_t ops) {
  return (kSecondsToBegin + kSecondsPerOp * double(ops)) * observedFactor;
}

} // namespace

void torch_ltc::noteCompilationSeconds(size_t ops, double seconds) {
  double factor = seconds / (kSecondsToBegin + kSecondsPerOp * double(ops));
  observedFactor = (observedFactor + factor) / 2;
}

PlaceholderProgram::PlaceholderProgram(GraphSnapshotPtr graph,
                                       std::function<void()> compile)
    : InterpretedProgram(std::move(graph)), compile(std::move(compile)) {}

void PlaceholderProgram::noteReuse() {
  if (!isRequested.load(std::memory_order_relaxed) &&
      seconds() >= kShare * expectedSeconds(numOps))
    requestCompilation();
}

void PlaceholderProgram::requestCompilation() {
  if (isRequested.exchange(true))
    return;
  compile();
  compile = nullptr; // with what it holds
}
