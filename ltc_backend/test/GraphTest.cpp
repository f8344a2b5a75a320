//===- GraphTest.cpp - Keys of graphs, donation ---------------------------===//

#include "graph/donation.h"

#include "Nodes.h"

#include <gtest/gtest.h>

using namespace torch_ltc;
using torch::lazy::Value;

namespace {

Hash128 key(c10::ArrayRef<Value> roots) {
  std::vector<torch::lazy::Output> outputs;
  for (const Value &root : roots)
    outputs.push_back(output(root));
  return buildGraph(outputs).hash;
}

/// Returns for each parameter whether it is donatable in the graph that
/// computes the tensor.
std::vector<bool> donatable(const Value &tensor) {
  std::vector<Value> roots(1, tensor);
  Graph graph = buildGraph({output(tensor)});
  return findDonatable(graph, roots);
}

TEST(GraphKey, CoversOperandOrder) {
  Value a = data(), b = data();
  // Data nodes are numbered at their first use, so a first root that reads `a`
  // before `b` fixes their numbers.
  Value first = mul(a, b);
  EXPECT_NE(key({first, sub(a, b)}), key({first, sub(b, a)}));
}

TEST(GraphKey, CoversSharing) {
  Value a = data(), b = data();
  EXPECT_NE(key({mul(a, a)}), key({mul(a, b)}));
  Value product = mul(a, b);
  EXPECT_EQ(key({sub(product, product)}), key({sub(product, product)}));
  EXPECT_NE(key({sub(product, product)}), key({sub(mul(a, b), mul(a, b))}));
  // Two nodes with the same data are one parameter.
  HostDataPtr shared = HostData::copyOf(at::ones({2, 2}));
  Value one(std::make_shared<DataNode>(shared));
  Value other(std::make_shared<DataNode>(shared));
  EXPECT_NE(key({mul(one, other)}), key({mul(a, b)}));
}

TEST(GraphKey, CoversShapesAndOps) {
  EXPECT_NE(key({mul(data({2, 2}), data({2, 2}))}),
            key({mul(data({2, 3}), data({2, 3}))}));
  Value a = data(), b = data();
  EXPECT_NE(key({mul(a, b)}), key({binary("aten::div.Tensor", a, b)}));
}

TEST(GraphKey, CoversRootsAndTheirOrder) {
  Value a = data(), b = data();
  Value product = mul(a, b), difference = sub(a, b);
  EXPECT_NE(key({product, difference}), key({difference, product}));
  EXPECT_NE(key({product, difference}), key({product}));
  EXPECT_NE(key({product, product}), key({product}));
}

TEST(GraphKey, LacksNumbersAndData) {
  Value a = data(), b = data();
  EXPECT_EQ(key({sub(a, b, 1)}), key({sub(a, b, 2)}));
  EXPECT_EQ(key({sub(a, b)}), key({sub(data(), data())}));
  Graph graph = buildGraph({output(sub(a, b, 7))});
  ASSERT_EQ(graph.scalars.size(), 1u);
  EXPECT_EQ(graph.scalars[0].asFloat, 7);
}

TEST(Donation, NeedsThatNothingElseHoldsTheData) {
  Value root;
  {
    Value a = data(), b = data();
    root = sub(a, b);
  }
  EXPECT_EQ(donatable(root), (std::vector<bool>{true, true}));
}

TEST(Donation, RespectsOtherHolders) {
  Value a = data();
  HostDataPtr held;
  Value root;
  {
    Value b = data(), c = data();
    held = static_cast<const DataNode *>(c.node.get())->data();
    root = sub(sub(a, b), c);
  }
  // `a` holds its node, and `held` the data of `c`.
  EXPECT_EQ(donatable(root), (std::vector<bool>{false, true, false}));
}

TEST(Donation, RespectsPendingGraphsOfOthers) {
  Value root, pending;
  {
    Value a = data(), b = data();
    Value difference = sub(a, b);
    root = mul(difference, difference);
    pending = sub(difference, difference); // reads a and b later
  }
  EXPECT_EQ(donatable(root), (std::vector<bool>{false, false}));
}

TEST(Donation, RespectsSharedBuffers) {
  HostDataPtr first = HostData::copyOf(at::ones({2, 2}));
  HostDataPtr second =
      HostData::create(floats({2, 2}), first->buffer(), nullptr);
  second->Assign(*first);
  Value root;
  {
    Value a(std::make_shared<DataNode>(std::move(second))), b = data();
    root = sub(a, b);
  }
  EXPECT_EQ(donatable(root), (std::vector<bool>{false, true}));
}

TEST(RenewGraph, NeedsTheSameSharing) {
  Value a = data(), b = data();
  Value root = sub(a, b);
  Graph graph = buildGraph({output(root)});
  std::vector<DataUse> uses = dataUses(graph);
  EXPECT_EQ(uses.size(), 2u);
  EXPECT_TRUE(renewGraph(graph, uses));
  EXPECT_EQ(graph.parameters.size(), 2u);
}

} // namespace
