//===- repeated_trace.h - Ops that were traced before -----------*- C++ -*-===//
//
// A training loop traces the same ops step after step. Each thread remembers
// the traces between its executions as a tree: traces that begin with the same
// ops share them, and part where they differ.
//
//   start - linear - relu - linear - loss - ... - adam     known graph
//                                  \ argmax - eq - sum     known graph
//
// While a new trace follows a branch, an op that equals the next one there (op,
// words of its arguments, operands by their place in the trace, data of the
// same shape) takes over that one's node, with its shapes, attributes and hash;
// numbers and data are the new ones. If at the end of the step the whole trace
// was followed and the results are the same, so is the graph: it isn't walked
// again. The first op that differs begins a new branch, and all that follows is
// traced in full. Where no trace repeats, as sizes change with every step,
// most of them leave no branch: remembering takes as long as the rest of
// tracing.
//
// The tree owns the nodes' memory, not their life: a node that nothing refers
// to any more lets go of its operands at that moment, as one that isn't
// remembered does, and only then can be taken over. So whoever holds a node -
// a tensor, another thread's graph - sees it unchanged, donation counts the
// same references, and no data lives longer.
//
//===----------------------------------------------------------------------===//

#ifndef TORCH_LTC_GRAPH_REPEATED_TRACE_H
#define TORCH_LTC_GRAPH_REPEATED_TRACE_H

#include "graph/graph.h"

#include <memory>
#include <vector>

namespace torch_ltc {

class RecordedOp;

/// A call of an op, as the tracer has read its arguments.
struct TracedCall {
  const OpRecord &record;
  c10::ArrayRef<Word> words;
  torch::lazy::OpList operands;
  c10::ArrayRef<DynamicScalar> scalars;
  c10::ScalarType promoted;
  /// Of the results, where the words don't imply them: numbers that vary are
  /// no part of them.
  c10::ArrayRef<torch::lazy::Shape> shapes = {};
};

/// The graph of a whole trace, for certain results.
struct KnownGraph {
  std::vector<torch::lazy::Output> roots;
  Graph graph;
  std::vector<DataUse> uses;
};

class RepeatedTrace {
public:
  static RepeatedTrace &ofThisThread();
  RepeatedTrace();
  ~RepeatedTrace() { forget(); }
  RepeatedTrace(const RepeatedTrace &) = delete;
  RepeatedTrace &operator=(const RepeatedTrace &) = delete;

  /// The node of this call, if an earlier trace goes on with it.
  torch::lazy::NodePtr follow(const TracedCall &call);
  /// A new node, which later traces may take over.
  torch::lazy::NodePtr append(const TracedCall &call,
                              AttributeListPtr attributes,
                              std::vector<torch::lazy::Shape> shapes);

  /// The graph below `roots` with its present data, if all of the trace was
  /// followed and ended so before. Its parameters are the caller's to release.
  std::shared_ptr<KnownGraph>
  knownGraph(c10::ArrayRef<torch::lazy::Output> roots);
  /// `graph` was built from `roots` at this point.
  void remember(const Graph &graph, c10::ArrayRef<torch::lazy::Output> roots);
  /// The next op begins a new trace.
  void endTrace();
  /// Of the trace; no other trace of the process has it.
  uint64_t number() const { return traceNumber; }

private:
  friend class RecordedOp;
  enum class State { Start, Following, Lost };
  std::vector<RecordedOp *> &continuations();
  bool begin();
  bool leavesBranch() const;
  /// Whether the node was made or taken over in this trace, by this thread.
  bool holds(const GraphNode *node) const;
  void drop(RecordedOp *branch);
  void forget();

  State state = State::Start;
  RecordedOp *last = nullptr; // of the trace so far
  std::vector<RecordedOp *> starts;
  uint64_t traceNumber;
  int64_t numFollowed = 0, numAppended = 0; // in this trace
  int64_t numDivergedInTurn = 0;            // traces that differed from all
  size_t numOps = 0;                        // in the tree
};

} // namespace torch_ltc

#endif // TORCH_LTC_GRAPH_REPEATED_TRACE_H
