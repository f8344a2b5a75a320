//===- placeholder_program.cpp - Program that isn't compiled yet ----------===//

#include "compilation/placeholder_program.h"

#include "compilation/compile_cost.h"
#include "compilation/idle_processor.h"

#include <algorithm>

using namespace torch_ltc;

/// The factor by which the total time of runs grows until the next decision.
static constexpr double kGrowth = 1.1;
/// The share of a run's time that a compiled program saves, approximately.
static constexpr double kShareSaved = 0.4;

/// The cost of a compilation on a processor that is otherwise idle, relative to
/// the cost on a busy one. Such a compilation delays no step, but needs memory.
static constexpr double kCostOnIdleProcessor = 0.3;

bool torch_ltc::isWorthCompiling(double seconds, const GraphSnapshot &graph) {
  // The cheap lower bound usually decides: most scripts end, or run different
  // programs, before a compilation pays off.
  const double saved = kShareSaved * seconds;
  double cost = minCompileSeconds(graph.numOps);
  if (saved < kCostOnIdleProcessor * cost)
    return false;
  cost = std::max(cost, expectedCompileSeconds(graph));
  return saved >= cost ||
         (saved >= kCostOnIdleProcessor * cost && hasIdleProcessor());
}

PlaceholderProgram::PlaceholderProgram(
    GraphSnapshotPtr graph, std::function<void()> compile,
    std::function<bool(PlaceholderProgram &)> noteRuns)
    : InterpretedProgram(std::move(graph)), compile(std::move(compile)),
      noteRuns(std::move(noteRuns)) {}

void PlaceholderProgram::noteReuse() {
  if (isRequested.load(std::memory_order_relaxed) || seconds() < nextCheck)
    return;
  // isWorthCompiling walks the graph, so it isn't called in each step.
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
  compile = nullptr; // releases what it holds
}
