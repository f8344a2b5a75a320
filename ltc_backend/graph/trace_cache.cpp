//===- trace_cache.cpp - Ops that were traced before ----------------------===//

#include "graph/trace_cache.h"

#include "config/config.h"
#include "events/metrics.h"

#include <c10/core/DefaultDtype.h>
#include <torch/csrc/lazy/core/config.h>

#include <algorithm>
#include <atomic>
#include <cstring>

using namespace torch_ltc;
using torch::lazy::NodePtr;
using torch::lazy::Output;
using torch::lazy::Value;

namespace {

// A training step has a few hundred to a few thousand ops, and a loop may have
// a trace for each of many sizes. A loop whose traces never repeat can't make
// the tree grow beyond these limits.
constexpr size_t kMaxCachedOps = 30000;
constexpr size_t kMaxContinuations = 128;
constexpr size_t kMaxGraphs = 2;
constexpr int64_t kMaxUnusedBranches = 8;
constexpr int64_t kUncachedPerBranch = 7;

/// Returns an identifier that is unique among the traces of all threads.
uint64_t nextTraceNumber() {
  static std::atomic<uint64_t> number{0};
  return number.fetch_add(1, std::memory_order_relaxed) + 1;
}

/// The properties of an operand on which an op's results and the graph's
/// structure depend.
struct ExpectedOperand {
  const GraphNode *op; // null: data
  size_t index;
  Hash128 hash;

  bool fits(const Value &value) const {
    const GraphNode *node = asGraphNode(value.node.get());
    return (op ? node == op : node->isData()) && value.index == index &&
           node->dagHashValue() == hash;
  }
};

} // namespace

namespace torch_ltc {

/// A node that exists as long as the tree or a reference holds it. References
/// are ordinary shared pointers, whose count is in the node itself.
class CachedNode final : public OpNode {
public:
  CachedNode(const TracedCall &call, AttributeListPtr attributes,
             std::vector<torch::lazy::Shape> shapes)
      : OpNode(call.record, call.operands, std::move(attributes), call.scalars,
               std::move(shapes)),
        promoted(call.promoted),
        defaultType(c10::get_default_dtype_as_scalartype()) {
    markRecorded();
    for (const Value &operand : call.operands) {
      const GraphNode *node = asGraphNode(operand.node.get());
      expected.push_back({.op = node->isData() ? nullptr : node,
                          .index = operand.index,
                          .hash = node->dagHashValue()});
    }
  }

  bool isFree() const {
    return holders.load(std::memory_order_acquire) == byTree;
  }

  bool fits(const TracedCall &call, c10::ScalarType defaultNow) const {
    if (&record() != &call.record || expected.size() != call.operands.size() ||
        promoted != call.promoted || defaultType != defaultNow)
      return false;
    const std::vector<Word> &words = attributes()->words;
    if (words.size() != call.words.size() ||
        std::memcmp(words.data(), call.words.data(),
                    words.size() * sizeof(Word)) != 0)
      return false;
    if (!call.shapes.empty() && !call.shapes.equals(shapes()))
      return false;
    for (size_t i = 0; i < expected.size(); ++i)
      if (!expected[i].fits(call.operands[i]))
        return false;
    return isFree();
  }

  NodePtr takeOver(const TracedCall &call) {
    renew(call.operands, call.scalars);
    return reference();
  }

  /// Returns a reference, whose copies share its count. Must not be called
  /// while the node has references.
  NodePtr reference() {
    holders.fetch_or(byReferences, std::memory_order_relaxed);
    return NodePtr(this, ReleaseOperands(), CountAllocator<CachedNode>{this});
  }

  void dropByTree() { release(byTree); }

  std::vector<CachedNode *> continuations; // the most recently used first
  std::vector<std::shared_ptr<KnownGraph>> graphs;
  uint64_t traceNumber = 0;

private:
  static constexpr int byTree = 1, byReferences = 2;

  struct ReleaseOperands {
    void operator()(CachedNode *op) const { op->releaseOperands(); }
  };

  /// An allocator that stores the reference count in the node. The node is free
  /// when the standard library frees the count's memory, which is its last
  /// access to the count.
  template <typename T> struct CountAllocator {
    using value_type = T;
    CachedNode *op;
    explicit CountAllocator(CachedNode *op) : op(op) {}
    template <typename U>
    CountAllocator(const CountAllocator<U> &other) : op(other.op) {}
    T *allocate(size_t) {
      static_assert(sizeof(T) <= sizeof(op->count));
      return reinterpret_cast<T *>(op->count);
    }
    void deallocate(T *, size_t) { op->release(byReferences); }
    template <typename U>
    bool operator==(const CountAllocator<U> &other) const {
      return op == other.op;
    }
  };

  void release(int holder) {
    if (holders.fetch_and(~holder, std::memory_order_acq_rel) == holder)
      delete this;
  }

  c10::ScalarType promoted, defaultType;
  c10::SmallVector<ExpectedOperand, 3> expected;
  std::atomic<int> holders{byTree};
  alignas(std::max_align_t) char count[64];
};

} // namespace torch_ltc

TraceCache::TraceCache() : traceNumber(nextTraceNumber()) {}

TraceCache &TraceCache::ofThisThread() {
  thread_local TraceCache cache;
  return cache;
}

std::vector<CachedNode *> &TraceCache::continuations() {
  return last ? last->continuations : starts;
}

/// Begins a trace. Returns whether the trace uses the cache.
bool TraceCache::begin() {
  state = State::Following;
  // Doesn't reuse nodes if torch collects its own debug information: a node
  // gets this information when it is constructed, so a reused node would have
  // the information of an earlier step.
  if (config().reuse_traces.get() && !FLAGS_torch_lazy_ir_debug)
    return true;
  forget();
  return false;
}

bool TraceCache::holds(const GraphNode *node) const {
  if (!static_cast<const OpNode *>(node)->isRecorded())
    return false;
  return static_cast<const CachedNode *>(node)->traceNumber == traceNumber;
}

NodePtr TraceCache::follow(const TracedCall &call) {
  if (state != State::Following && (state == State::Lost || !begin()))
    return nullptr;
  c10::ScalarType defaultType = c10::get_default_dtype_as_scalartype();
  std::vector<CachedNode *> &next = continuations();
  for (auto it = next.begin(); it != next.end(); ++it) {
    CachedNode *op = *it;
    if (!op->fits(call, defaultType))
      continue;
    if (it != next.begin())
      std::rotate(next.begin(), it, it + 1);
    op->traceNumber = traceNumber;
    last = op;
    ++numFollowed;
    return op->takeOver(call);
  }
  if (numAppended == 0 && !leavesBranch())
    state = State::Lost;
  return nullptr;
}

/// Whether a trace that differs from all cached ones is cached from the first
/// different op on. Each repeated trace pays for one branch.
bool TraceCache::leavesBranch() const {
  return numUnusedBranches < kMaxUnusedBranches ||
         numUncachedInTurn >= kUncachedPerBranch;
}

NodePtr TraceCache::append(const TracedCall &call, AttributeListPtr attributes,
                           std::vector<torch::lazy::Shape> shapes) {
  // A trace isn't cached if it reads nodes of other traces (those of another
  // thread, or of a step that couldn't be compiled).
  for (const Value &operand : call.operands) {
    const GraphNode *node = asGraphNode(operand.node.get());
    if (!node->isData() && !holds(node))
      state = State::Lost;
  }
  if (state != State::Lost && numOps >= kMaxCachedOps && !dropOldestBranch())
    state = State::Lost;
  if (state == State::Lost)
    return std::make_shared<OpNode>(call.record, call.operands,
                                    std::move(attributes), call.scalars,
                                    std::move(shapes));
  std::vector<CachedNode *> &next = continuations();
  if (next.size() == kMaxContinuations) {
    drop(next.back());
    next.pop_back();
  }
  auto *op = new CachedNode(call, std::move(attributes), std::move(shapes));
  op->traceNumber = traceNumber;
  next.insert(next.begin(), op);
  last = op;
  ++numOps;
  ++numAppended;
  return op->reference();
}

std::shared_ptr<KnownGraph>
TraceCache::knownGraph(c10::ArrayRef<Output> roots) {
  if (state != State::Following || !last)
    return nullptr;
  for (const std::shared_ptr<KnownGraph> &known : last->graphs) {
    if (!roots.equals(known->roots))
      continue;
    if (renewGraph(known->graph, known->uses))
      return known;
    known->graph.parameters.clear();
  }
  return nullptr;
}

void TraceCache::remember(const Graph &graph, c10::ArrayRef<Output> roots) {
  // A sequence that is traced for the first time isn't remembered, because it
  // may never repeat.
  if (state != State::Following || !last || numAppended)
    return;
  for (const GraphNode *node : graph.nodes)
    if (!node->isData() && !holds(node))
      return;
  auto known = std::make_shared<KnownGraph>();
  known->roots = roots.vec();
  known->graph = graph;
  known->uses = dataUses(graph);
  known->graph.parameters.clear();
  last->graphs.insert(last->graphs.begin(), std::move(known));
  if (last->graphs.size() > kMaxGraphs)
    last->graphs.pop_back();
}

void TraceCache::endTrace() {
  if (numFollowed)
    count(Counter::reused_ops, numFollowed);
  if (numAppended) {
    numUnusedBranches = std::min(numUnusedBranches + 1, kMaxUnusedBranches);
    numUncachedInTurn = 0;
  } else if (state == State::Lost) {
    ++numUncachedInTurn;
  } else if (numFollowed && numUnusedBranches > 0) {
    --numUnusedBranches;
  }
  numFollowed = numAppended = 0;
  traceNumber = nextTraceNumber();
  last = nullptr;
  state = State::Start;
}

void TraceCache::drop(CachedNode *branch) {
  ++numDrops;
  std::vector<CachedNode *> stack{branch};
  while (!stack.empty()) {
    CachedNode *op = stack.back();
    stack.pop_back();
    stack.insert(stack.end(), op->continuations.begin(),
                 op->continuations.end());
    --numOps;
    op->dropByTree();
  }
}

/// Drops a branch that wasn't followed for longer than its siblings, but no op
/// of the current trace: up to its last op, these are the first continuations;
/// the continuations of its last op belong to other traces. Returns whether
/// there was such a branch.
bool TraceCache::dropOldestBranch() {
  std::vector<CachedNode *> *parent = nullptr;
  for (std::vector<CachedNode *> *next = &starts; !next->empty();
       next = &next->back()->continuations)
    if (next->size() > 1 || next == &continuations())
      parent = next;
  if (!parent)
    return false;
  drop(parent->back());
  parent->pop_back();
  return true;
}

/// Drops the tree; the rest of this trace isn't cached.
void TraceCache::forget() {
  for (CachedNode *op : starts)
    drop(op);
  starts.clear();
  last = nullptr;
  numUnusedBranches = numUncachedInTurn = 0;
  state = State::Lost;
}
