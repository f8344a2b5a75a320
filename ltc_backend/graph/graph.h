//===- graph.h - The graph below a set of results ---------------*- C++ -*-===//
//
// `Graph` is what a walk over the pending nodes collects in every step: the
// nodes in post-order, parameters, scalars, and the structural hash that names
// the program. The hash covers what each node is and *which* earlier positions
// it reads, so two steps have the same hash only if the same program computes
// both. (Combining the nodes' own hashes isn't enough: if a and b have the same
// shape, a - b and b - a would have the same hash.)
//
//   a.mm(b) + a, with a and b in memory:   0: data, parameter 0      (a)
//                                          1: data, parameter 1      (b)
//                                          2: aten::mm 0 1
//                                          3: aten::add.Tensor 2 0
//
// `GraphSnapshot` is a copy without the data, made for a new program; it is the
// input of the lowering, the interpreter and the printers.
//
//===----------------------------------------------------------------------===//

#ifndef TORCH_LTC_GRAPH_GRAPH_H
#define TORCH_LTC_GRAPH_GRAPH_H

#include "ir/node.h"
#include "memory/size_marks.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace torch_ltc {

/// A result of the node at `position`.
struct ResultRef {
  uint32_t position;
  uint32_t index;
  bool operator==(const ResultRef &) const = default;
};

struct Graph {
  /// The nodes in post-order. The holder of the roots keeps them alive.
  std::vector<const GraphNode *> nodes;
  /// Operands of all nodes, concatenated; those of node i start at
  /// `firstOperand[i]`.
  std::vector<ResultRef> operands;
  std::vector<uint32_t> firstOperand;
  /// How often each node is an operand or a root.
  std::vector<uint32_t> uses;
  /// The distinct results, and for each root the index of its result.
  std::vector<ResultRef> results;
  std::vector<uint32_t> resultOfRoot;
  /// Distinct data in order of first use, and the number of nodes that hold
  /// each.
  std::vector<HostDataPtr> parameters;
  std::vector<uint32_t> nodesOfParameter;
  std::vector<DynamicScalar> scalars;
  size_t numOps = 0;
  Hash128 hash;
};

/// Returns the graph that computes `roots`.
Graph buildGraph(c10::ArrayRef<torch::lazy::Output> roots);

/// An operand position at which an op reads data.
struct DataUse {
  const GraphNode *op;
  uint32_t operand;
  uint32_t position;  // of the data in the graph
  uint32_t parameter; // the data's index among the parameters
  bool isFirst;       // whether it is the first use of its position
};

/// All uses of data, in the order of the graph's operands.
std::vector<DataUse> dataUses(const Graph &graph);

/// Updates the data and scalars of `graph` after its ops have been called again
/// with new data and scalars. Returns false if the ops now form a different
/// graph, because they share data in a different way; `graph` is then invalid.
bool renewGraph(Graph &graph, c10::ArrayRef<DataUse> uses);

struct SnapshotNode {
  const OpRecord *record = nullptr; // null: data
  AttributeListPtr attributes;
  uint32_t firstOperand = 0;
  uint32_t numOperands = 0;
  uint32_t firstScalar = 0;
  uint32_t parameter = 0; // of data
  LocationId location = 0;
  ModulePathId modulePath = 0;
  std::vector<torch::lazy::Shape> shapes;
};

struct SnapshotParameter {
  torch::lazy::Shape shape;
  std::string name;
  bool donatable = false;
  SizeMarks marks = {};
};

struct GraphSnapshot {
  std::string name; // the hash in hexadecimal
  std::vector<SnapshotNode> nodes;
  std::vector<ResultRef> operands;
  std::vector<ResultRef> results;
  std::vector<SnapshotParameter> parameters;
  std::vector<bool> scalarIsFloat;
  size_t numOps = 0;

  const torch::lazy::Shape &shape(ResultRef ref) const {
    return nodes[ref.position].shapes[ref.index];
  }
};
using GraphSnapshotPtr = std::shared_ptr<const GraphSnapshot>;

GraphSnapshot takeSnapshot(const Graph &graph, std::string name,
                           const std::vector<bool> &donatable);

/// Returns the operand that the op's result may replace (`OpRecord::updates`),
/// or none if `result` is a parameter or replaces no operand.
std::optional<ResultRef> replacedValue(const GraphSnapshot &graph,
                                       ResultRef result);

/// Returns the parameter that the result updates, if any. Follows the chain of
/// replaced values (`replacedValue`) from the result to its first value.
std::optional<size_t> updatedParameter(const GraphSnapshot &graph,
                                       ResultRef result);

/// The graph as text, one line for each node: for people, and to compare
/// programs.
std::string graphText(const GraphSnapshot &graph);
/// The graph in Graphviz's DOT language.
std::string graphDot(const GraphSnapshot &graph);
/// The text of one node, without its position: "f32[2,3] aten::relu(%4)".
std::string nodeText(const GraphSnapshot &graph, size_t position);

} // namespace torch_ltc

#endif // TORCH_LTC_GRAPH_GRAPH_H
