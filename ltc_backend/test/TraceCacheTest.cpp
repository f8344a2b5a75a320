//===- TraceCacheTest.cpp - Nodes that later traces reuse -----------------===//

#include "graph/trace_cache.h"

#include "Nodes.h"

#include <gtest/gtest.h>

using namespace torch_ltc;
using torch::lazy::NodePtr;
using torch::lazy::Value;

namespace {

class TraceCacheTest : public testing::Test {
protected:
  /// Traces `aten::<name>(a, b)`, and sets `wasReused` to whether a node was
  /// reused.
  Value trace(const char *name, const Value &a, const Value &b) {
    std::vector<Word> words = binaryWords(false);
    std::vector<Value> operands{a, b};
    TracedCall call{.record = getOpRecord(name),
                    .words = words,
                    .operands = operands,
                    .scalars = {},
                    .promoted = at::kFloat};
    NodePtr node = cache.follow(call);
    wasReused = node != nullptr;
    if (!node)
      node = cache.append(call, internAttributes(call.record.id, words),
                          {a.shape()});
    return Value(node);
  }
  Value product(const Value &a, const Value &b) {
    return trace("aten::mul.Tensor", a, b);
  }
  Value quotient(const Value &a, const Value &b) {
    return trace("aten::div.Tensor", a, b);
  }
  /// Traces `length` products of vectors of `size` elements. Returns whether
  /// the nodes of all were reused.
  bool traceProducts(int64_t size, int64_t length) {
    Value result = data({size}), factor = data({size});
    bool allReused = true;
    for (int64_t i = 0; i < length; ++i) {
      result = product(result, factor);
      allReused &= wasReused;
    }
    cache.endTrace();
    return allReused;
  }

  TraceCache cache;
  bool wasReused = false;
};

TEST_F(TraceCacheTest, ReusesNodesWithNewData) {
  const torch::lazy::Node *first = nullptr;
  for (int step = 0; step < 3; ++step) {
    Value a = data(), b = data();
    Value result = product(a, b);
    EXPECT_EQ(wasReused, step > 0);
    if (!first)
      first = result.node.get();
    EXPECT_EQ(result.node.get(), first);
    EXPECT_EQ(asGraphNode(first)->operandNode(0), a.node);
    cache.endTrace();
  }
}

TEST_F(TraceCacheTest, KeepsNoOperandAlive) {
  std::weak_ptr<torch::lazy::Node> operand;
  {
    Value a = data(), b = data();
    operand = a.node;
    Value result = product(a, b);
    a = b = Value();
    EXPECT_FALSE(operand.expired());
  }
  EXPECT_TRUE(operand.expired());
}

TEST_F(TraceCacheTest, LeavesHeldNodesAlone) {
  Value a = data(), b = data();
  Value held = product(a, b);
  cache.endTrace();
  Value other = product(data(), data());
  EXPECT_FALSE(wasReused);
  EXPECT_NE(other.node, held.node);
  EXPECT_EQ(asGraphNode(held.node.get())->operandNode(0), a.node);
}

TEST_F(TraceCacheTest, CachesBranches) {
  for (int step = 0; step < 6; ++step) {
    Value a = data(), b = data();
    Value first = product(a, b);
    EXPECT_EQ(wasReused, step > 0);
    Value second = step % 2 ? quotient(first, b) : product(first, b);
    EXPECT_EQ(wasReused, step > 1);
    cache.endTrace();
  }
}

TEST_F(TraceCacheTest, ComparesOperandsShapesAndWords) {
  {
    Value a = data(), b = data();
    Value result = product(product(a, b), b);
    cache.endTrace();
  }
  Value a = data({3, 3}), b = data({3, 3});
  Value result = product(a, b);
  EXPECT_FALSE(wasReused);
  cache.endTrace();
  Value c = data(), d = data();
  Value again = product(c, d);
  EXPECT_TRUE(wasReused);
  // In the first trace, the second op read the first result and data, not the
  // first result twice.
  Value square = product(again, again);
  EXPECT_FALSE(wasReused);
}

TEST_F(TraceCacheTest, CachesTracesOfManySizes) {
  constexpr int64_t numSizes = 100;
  for (int round = 0; round < 8; ++round)
    for (int64_t size = 2; size < 2 + numSizes; ++size)
      traceProducts(size, 3);
  for (int64_t size = 2; size < 2 + numSizes; ++size)
    EXPECT_TRUE(traceProducts(size, 3)) << size;
}

TEST_F(TraceCacheTest, CachesFewTracesIfNoneRepeats) {
  for (int64_t size = 1000; size < 2000; ++size)
    traceProducts(size, 3);
  const uint64_t drops = cache.numDropped();
  for (int64_t size = 2000; size < 2800; ++size)
    traceProducts(size, 3);
  // The tree has 128 branches of the last traces, so each new one drops one.
  EXPECT_LE(cache.numDropped() - drops, 800 / 8);
}

TEST_F(TraceCacheTest, DropsTheOldestTraceOfAFullTree) {
  constexpr int64_t length = 12000; // the tree holds two of these
  EXPECT_FALSE(traceProducts(2, length));
  EXPECT_FALSE(traceProducts(3, length));
  EXPECT_TRUE(traceProducts(2, length));
  EXPECT_FALSE(traceProducts(4, length));
  EXPECT_TRUE(traceProducts(2, length));
  EXPECT_TRUE(traceProducts(4, length));
  EXPECT_FALSE(traceProducts(3, 1));
}

TEST_F(TraceCacheTest, DropsTheOnlyTraceOfAFullTreeFromTheFirstOtherOp) {
  traceProducts(2, 40000); // is cached up to the limit
  for (int step = 0; step < 2; ++step) {
    Value a = data({2}), b = data({2});
    Value first = product(a, b);
    EXPECT_TRUE(wasReused);
    quotient(first, b);
    EXPECT_EQ(wasReused, step > 0);
    cache.endTrace();
  }
}

TEST_F(TraceCacheTest, KnowsTheGraphOfAWholeTrace) {
  for (int step = 0; step < 4; ++step) {
    Value a = data(), b = data();
    Value result = product(a, b);
    std::vector<torch::lazy::Output> roots{output(result)};
    std::shared_ptr<KnownGraph> known = cache.knownGraph(roots);
    // The first trace is new; the second one, which repeats it, remembers the
    // graph.
    EXPECT_EQ(known != nullptr, step > 1);
    if (known) {
      EXPECT_EQ(known->graph.hash, buildGraph(roots).hash);
      EXPECT_EQ(known->graph.parameters[0],
                static_cast<const DataNode *>(a.node.get())->data());
      known->graph.parameters.clear();
    } else {
      cache.remember(buildGraph(roots), roots);
    }
    cache.endTrace();
  }
}

TEST_F(TraceCacheTest, KnownGraphsNeedTheSameSharing) {
  for (int step = 0; step < 2; ++step) {
    Value a = data(), b = data();
    Value result = product(a, b);
    std::vector<torch::lazy::Output> roots{output(result)};
    cache.remember(buildGraph(roots), roots);
    cache.endTrace();
  }
  Value a = data();
  Value result = product(a, a);
  EXPECT_TRUE(wasReused); // the node is the same, the graph isn't
  EXPECT_EQ(cache.knownGraph({output(result)}), nullptr);
}

} // namespace
