//===- trace_cache.h - Ops that were traced before --------------*- C++ -*-===//
//
// A training loop traces the same ops step after step. Each thread caches the
// traces between its executions as a tree: traces with the same initial ops
// share a path, and branch where they differ.
//
//   start - linear - relu - linear - loss - ... - adam     known graph
//                                  \ argmax - eq - sum     known graph
//
// While a new trace follows a branch, an op that equals the next one there (op,
// words of its arguments, operands by their position in the trace, data of the
// same shape) reuses that op's node, with its shapes, attributes and hash;
// numbers and data are new. If the whole trace matches at the end of the step
// and the results are the same, the graph is the same and isn't walked again.
// The first op that differs starts a new branch, and all later ops are traced
// in full. A trace that repeats pays for one branch: if sizes change in every
// step, so that no trace repeats, most traces don't add a branch, because
// adding one takes as long as the rest of tracing.
//
// The tree owns the nodes' memory, not their lifetime: an unreferenced node
// releases its operands immediately, like an uncached one, and can be reused
// only after that. So every holder of a node (a tensor, another thread's graph)
// sees it unchanged, donation counts the same references, and no data lives
// longer.
//
//===----------------------------------------------------------------------===//

#ifndef TORCH_LTC_GRAPH_TRACE_CACHE_H
#define TORCH_LTC_GRAPH_TRACE_CACHE_H

#include "graph/graph.h"

#include <memory>
#include <vector>

namespace torch_ltc {

class CachedNode;

/// A call of an op, with its arguments as read by the tracer.
struct TracedCall {
  const OpRecord &record;
  c10::ArrayRef<Word> words = {};
  torch::lazy::OpList operands = {};
  c10::ArrayRef<DynamicScalar> scalars = {};
  c10::ScalarType promoted;
  /// Shapes of the results, if the words don't imply them: varying numbers
  /// aren't part of the words.
  c10::ArrayRef<torch::lazy::Shape> shapes = {};
};

/// The graph of a whole trace, for the results `roots`.
struct KnownGraph {
  std::vector<torch::lazy::Output> roots;
  Graph graph;
  std::vector<DataUse> uses;
};

class TraceCache {
public:
  static TraceCache &ofThisThread();
  TraceCache();
  ~TraceCache() { forget(); }
  TraceCache(const TraceCache &) = delete;
  TraceCache &operator=(const TraceCache &) = delete;

  /// Returns the node for this call if an earlier trace continues with an equal
  /// call, otherwise null.
  torch::lazy::NodePtr follow(const TracedCall &call);
  /// Creates a node, which later traces may reuse.
  torch::lazy::NodePtr append(const TracedCall &call,
                              AttributeListPtr attributes,
                              std::vector<torch::lazy::Shape> shapes);

  /// Returns the graph that computes `roots`, with the current data, if the
  /// whole trace equals an earlier one that ended with the same results;
  /// otherwise null.
  /// The caller must release the graph's parameters.
  std::shared_ptr<KnownGraph>
  knownGraph(c10::ArrayRef<torch::lazy::Output> roots);
  /// Records that `graph` was built from `roots` at this point of the trace.
  /// Has no effect unless the whole trace so far repeats an earlier trace.
  void remember(const Graph &graph, c10::ArrayRef<torch::lazy::Output> roots);
  /// Ends the trace: the next op starts a new one.
  void endTrace();
  /// Identifier of the trace, unique in the process.
  uint64_t number() const { return traceNumber; }
  /// Number of branches that have been dropped from the tree.
  uint64_t numDropped() const { return numDrops; }

private:
  friend class CachedNode;
  enum class State { Start, Following, Lost };
  std::vector<CachedNode *> &continuations();
  bool begin();
  bool leavesBranch() const;
  /// Whether the node was created or reused in this trace, by this thread.
  bool holds(const GraphNode *node) const;
  void drop(CachedNode *branch);
  bool dropOldestBranch();
  void forget();

  State state = State::Start;
  CachedNode *last = nullptr; // the trace's last op so far
  std::vector<CachedNode *> starts;
  uint64_t traceNumber;
  int64_t numFollowed = 0, numAppended = 0; // in this trace
  int64_t numUnusedBranches = 0; // added, less the traces that repeated one
  int64_t numUncachedInTurn = 0; // uncached traces since the last new branch
  size_t numOps = 0;             // in the tree
  uint64_t numDrops = 0;
};

} // namespace torch_ltc

#endif // TORCH_LTC_GRAPH_TRACE_CACHE_H
