//===- placeholder_program.cpp - Runs before compilation ------------------===//

#include "compilation/placeholder_program.h"

#include "compilation/compile_cost.h"

using namespace torch_ltc;

static constexpr double kGrowth = 1.1;

bool torch_ltc::isWorthCompiling(double seconds, const GraphSnapshot &graph) {
  // Whatever follows, this takes at most twice the time of the better choice. A
  // smaller share pays off less often: most scripts end, or run other programs,
  // before a compilation has paid off.
  return seconds >= leastCompileSeconds(graph.numOps) &&
         seconds >= expectedCompileSeconds(graph);
}

PlaceholderProgram::PlaceholderProgram(GraphSnapshotPtr graph,
                                       std::function<void()> compile)
    : InterpretedProgram(std::move(graph)), compile(std::move(compile)) {}

void PlaceholderProgram::noteReuse() {
  if (isRequested.load(std::memory_order_relaxed) || seconds() < nextCheck)
    return;
  if (isWorthCompiling(seconds(), *graph))
    return requestCompilation();
  // The graph isn't walked in each step.
  nextCheck = kGrowth * seconds();
}

void PlaceholderProgram::requestCompilation() {
  if (isRequested.exchange(true))
    return;
  compile();
  compile = nullptr; // with everything it holds
}
