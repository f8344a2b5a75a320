//===- node_arguments.h - The arguments of a graph's op ---------*- C++ -*-===//
//
// Rebuilds the dispatcher's arguments from a node's words, so that the op can
// be called on the tensors that stand for its operands.
//
//===----------------------------------------------------------------------===//

#ifndef TORCH_LTC_GRAPH_NODE_ARGUMENTS_H
#define TORCH_LTC_GRAPH_NODE_ARGUMENTS_H

#include "graph/graph.h"

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

namespace torch_ltc {

/// The arguments of one op, in schema order. Doesn't own its operands or words.
class NodeArguments {
public:
  /// `values`: the results of the preceding nodes.
  NodeArguments(const GraphSnapshot &graph, const SnapshotNode &node,
                const std::vector<std::vector<at::Tensor>> &values,
                c10::ArrayRef<DynamicScalar> scalars)
      : graph(graph), node(node), values(values), scalars(scalars),
        operand(node.firstOperand), scalar(node.firstScalar) {}

  /// Returns the next argument. Must be called for each entry of the node's
  /// words, in order.
  c10::IValue build(const Attribute &attribute, const ArgumentSpec &spec);

private:
  at::Scalar complexNumber();
  at::Tensor nextOperand();
  c10::IValue operandList(const Attribute &attribute);
  c10::IValue optionalOperandList(const Attribute &attribute);
  c10::IValue numberTensor(const Attribute &attribute);

  const GraphSnapshot &graph;
  const SnapshotNode &node;
  const std::vector<std::vector<at::Tensor>> &values;
  c10::ArrayRef<DynamicScalar> scalars;
  uint32_t operand, scalar;
};

} // namespace torch_ltc

#endif // TORCH_LTC_GRAPH_NODE_ARGUMENTS_H
