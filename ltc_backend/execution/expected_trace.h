//===- expected_trace.h - Traces that will probably repeat ------*- C++ -*-===//
//
// The tracing thread's part of programs/head_start.h. A step that its thread
// waited for, and whose program is interpreted, is expected to repeat when the
// next trace begins with the same op (graph/trace_cache.h). Each op that is
// reused as expected may run on the worker thread; the first one that differs
// ends the head start.
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

  /// An op was traced whose node an earlier trace made.
  void noteReused(const OpNode &op);
  /// An op was traced that no earlier trace continues with.
  void noteNew();
  /// The trace has ended with this graph (null: one that isn't known). Returns
  /// what has run of it, if everything was as expected.
  HeadStartPtr endTrace(const std::shared_ptr<KnownGraph> &known);
  /// The last trace, whose step runs `program` with so many threads, will
  /// probably be repeated.
  void expectAgain(const ProgramPtr &program, int numThreads);

private:
  struct Trace;
  using TracePtr = std::shared_ptr<Trace>;

  void begin(const OpNode &op);
  void confirm(const OpNode &op);
  void request();
  void abandon();

  std::vector<const GraphNode *> ops; // this trace's so far
  bool areReused = true;
  TracePtr current; // what this trace repeats so far
  HeadStartPtr headStart;
  size_t numConfirmed = 0, numRequested = 0;
  /// The last trace, if an earlier one had the same graph.
  std::vector<const GraphNode *> lastOps;
  std::shared_ptr<KnownGraph> lastGraph;
  /// The first op, and the graph of the trace before: a loop that accumulates
  /// gradients alternates between two graphs.
  using Key = std::pair<const GraphNode *, const KnownGraph *>;
  std::map<Key, TracePtr> traces;
  const KnownGraph *graphBefore = nullptr; // may be deleted
};

/// Whether it is a run of the program with the graph's parameters.
bool isRunOf(const HeadStart &headStart, const Program &program,
             const Graph &graph);

} // namespace torch_ltc

#endif // TORCH_LTC_EXECUTION_EXPECTED_TRACE_H
