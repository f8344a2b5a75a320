//===- placeholder_program.cpp - Runs before compilation ------------------===//

#include "compilation/placeholder_program.h"

using namespace torch_ltc;

namespace {

/// Share of the expected compile time that may be spent on running op by op
/// before the compilation starts. Compilation has its own thread, so a longer
/// wait mostly costs steps.
constexpr double kShare = 0.25;

/// Seconds to load the compiler, and for each op of a new program.
constexpr double kSecondsToBegin = 0.05;
constexpr double kSecondsPerOp = 1.5e-3;

/// Measured compile times, relative to the constants above.
std::atomic<double> observedFactor{1};

double expectedSeconds(size_t ops) {
  return (kSecondsToBegin + kSecondsPerOp * double(ops)) * observedFactor;
}

} // namespace

bool torch_ltc::isWorthCompiling(double seconds, size_t ops) {
  return seconds >= kShare * expectedSeconds(ops);
}

void torch_ltc::noteCompilationSeconds(size_t ops, double seconds) {
  double factor = seconds / (kSecondsToBegin + kSecondsPerOp * double(ops));
  observedFactor = (observedFactor + factor) / 2;
}

PlaceholderProgram::PlaceholderProgram(GraphSnapshotPtr graph,
                                       std::function<void()> compile)
    : InterpretedProgram(std::move(graph)), compile(std::move(compile)) {}

void PlaceholderProgram::noteReuse() {
  if (!isRequested.load(std::memory_order_relaxed) &&
      isWorthCompiling(seconds(), numOps))
    requestCompilation();
}

void PlaceholderProgram::requestCompilation() {
  if (isRequested.exchange(true))
    return;
  compile();
  compile = nullptr; // with everything it holds
}
