//===- placeholder_program.cpp - Runs before compilation ------------------===//

#include "compilation/placeholder_program.h"

#include "compilation/compile_cost.h"

using namespace torch_ltc;

static constexpr double kGrowth = 1.1;
/// Of a run's time, a compiled program saves about so much.
static constexpr double kShareSaved = 0.4;

bool torch_ltc::isWorthCompiling(double seconds, const GraphSnapshot &graph) {
  // Most scripts end, or have other programs, before a compilation pays.
  const double saved = kShareSaved * seconds;
  return saved >= leastCompileSeconds(graph.numOps) &&
         saved >= expectedCompileSeconds(graph);
}

PlaceholderProgram::PlaceholderProgram(
    GraphSnapshotPtr graph, std::function<void()> compile,
    std::function<bool(PlaceholderProgram &)> noteRuns)
    : InterpretedProgram(std::move(graph)), compile(std::move(compile)),
      noteRuns(std::move(noteRuns)) {}

void PlaceholderProgram::noteReuse() {
  if (isRequested.load(std::memory_order_relaxed) || seconds() < nextCheck)
    return;
  // The graph isn't walked in each step.
  nextCheck = kGrowth * seconds();
  if (!noteRuns(*this) && isWorthCompiling(seconds(), *graph))
    requestCompilation();
}

double PlaceholderProgram::takeSeconds() {
  double now = seconds();
  return now - secondsTaken.exchange(now);
}

void PlaceholderProgram::requestCompilation() {
  if (isRequested.exchange(true))
    return;
  compile();
  compile = nullptr; // with everything it holds
}
