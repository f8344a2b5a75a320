//===- expected_trace.h - Traces that will probably repeat ------*- C++ -*-===//
//
// The tracing thread's part of a head start (programs/head_start.h). If a
// thread waited for a step and the step's program is interpreted, the step is
// expected to repeat when a later trace begins with the step's first op
// (graph/trace_cache.h). Each op that is reused as expected may run on the
// worker thread; the first op that differs ends the head start.
//
//===----------------------------------------------------------------------===//

#ifndef TORCH_LTC_EXECUTION_EXPECTED_TRACE_H
#define TORCH_LTC_EXECUTION_EXPECTED_TRACE_H

#include "graph/trace_cache.h"
#include "programs/head_start.h"

#include <map>
#include <utility>

namespace torch_ltc {

class ExpectedTraces {
public:
  static ExpectedTraces &ofThisThread();

  /// Records that a traced op reused the node of an earlier trace.
  void noteReused(const OpNode &op);
  /// Records that a traced op got a new node.
  void noteNew();
  /// Ends the trace. `known` is its graph, null if no earlier trace had the
  /// same graph. Returns the head start if all ops were as expected.
  HeadStartPtr endTrace(const std::shared_ptr<KnownGraph> &known);
  /// Expects the last trace, whose step runs `program` with `numThreads`
  /// threads, to be repeated.
  void expectAgain(const ProgramPtr &program, int numThreads);

private:
  struct Trace;
  using TracePtr = std::shared_ptr<Trace>;

  void begin(const OpNode &op);
  void confirm(const OpNode &op);
  void request();
  void abandon();

  std::vector<const GraphNode *> ops; // of the current trace so far
  bool areReused = true;
  TracePtr current; // the expected trace that this trace repeats so far
  HeadStartPtr headStart;
  size_t numConfirmed = 0, numRequested = 0;
  /// The last trace. `lastGraph` is null unless an earlier trace had the same
  /// graph.
  std::vector<const GraphNode *> lastOps;
  std::shared_ptr<KnownGraph> lastGraph;
  /// The first op of a trace, and the graph of the trace before it: a loop that
  /// accumulates gradients has two graphs that begin with the same op.
  using Key = std::pair<const GraphNode *, const KnownGraph *>;
  std::map<Key, TracePtr> traces;
  const KnownGraph *graphBefore = nullptr; // may be deleted; only compared
};

/// Whether the head start runs `program` with the graph's parameters.
bool isRunOf(const HeadStart &headStart, const Program &program,
             const Graph &graph);

} // namespace torch_ltc

#endif // TORCH_LTC_EXECUTION_EXPECTED_TRACE_H
