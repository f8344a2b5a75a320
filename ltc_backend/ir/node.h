//===- node.h - Nodes of the traced graph -----------------------*- C++ -*-===//
//
// There are two kinds of nodes: a `DataNode` is a value in memory, an `OpNode`
// a call of an op of the op table. Both are immutable while they are
// referenced. Destruction is iterative, because the base class's destructor
// (torch 2.13) is recursive and overflows the stack on deep graphs.
//
//===----------------------------------------------------------------------===//

#ifndef TORCH_LTC_IR_NODE_H
#define TORCH_LTC_IR_NODE_H

#include "ir/attributes.h"
#include "ir/op_record.h"
#include "memory/host_data.h"
#include "source/source_location.h"

#include <c10/util/SmallVector.h>
#include <torch/csrc/lazy/core/ir.h>

namespace torch_ltc {

/// A number that may change from step to step.
struct DynamicScalar {
  bool isFloat;
  union {
    int64_t asInt;
    double asFloat;
  };
  static DynamicScalar of(int64_t value) {
    return {.isFloat = false, .asInt = value};
  }
  static DynamicScalar of(double value) {
    return {.isFloat = true, .asFloat = value};
  }
};

class GraphNode : public torch::lazy::Node {
public:
  using Node::Node;
  ~GraphNode() override;

  torch::lazy::hash_t hash() const final {
    return torch::lazy::hash_t(dagHash.high, dagHash.low);
  }
  torch::lazy::hash_t shapeHash() const final { return hash(); }

  size_t numOperands() const { return operands_.size(); }
  const torch::lazy::NodePtr &operandNode(size_t i) const {
    return operands_[i];
  }
  size_t operandIndex(size_t i) const { return operands_as_outputs_[i].index; }
  const Hash128 &dagHashValue() const { return dagHash; }
  virtual bool isData() const = 0;

protected:
  /// Releases the operands; the memory for their list stays allocated.
  void releaseOperands();

  Hash128 dagHash;

private:
  friend class PostOrder;
  // The position in the graph that is being walked; see graph/graph.h.
  mutable uint64_t walkNumber = 0;
  mutable uint32_t walkPosition = 0;
};

class DataNode final : public GraphNode {
public:
  explicit DataNode(HostDataPtr data);
  const HostDataPtr &data() const { return dataPtr; }
  bool isData() const override { return true; }
  std::string ToString() const override;

private:
  HostDataPtr dataPtr;
};

class OpNode : public GraphNode {
public:
  OpNode(const OpRecord &record, torch::lazy::OpList operands,
         AttributeListPtr attributes, c10::ArrayRef<DynamicScalar> scalars,
         std::vector<torch::lazy::Shape> shapes);

  const OpRecord &record() const { return opRecord; }
  const AttributeListPtr &attributes() const { return attributeList; }
  /// A hash of the op, its arguments except operands, and the types of its
  /// results: everything of the node that a compiler reads.
  const Hash128 &signature() const { return signatureHash; }
  c10::ArrayRef<DynamicScalar> scalars() const { return dynamicScalars; }
  LocationId location() const { return sourceLocation; }
  ModulePathId modulePath() const { return sourceModule; }
  /// Whether the op was called in place: its result is the new value of the
  /// tensor that held its first operand.
  bool isInPlace() const { return inPlace; }
  void markInPlace() { inPlace = true; }
  /// Whether the node belongs to a cached trace of its thread
  /// (graph/trace_cache.h).
  bool isRecorded() const { return recorded; }
  /// A number of the call that created the node or reused it, unique in the
  /// process (execution/expected_trace.h); 0 if
  /// it isn't numbered.
  uint64_t number() const { return callNumber; }
  void setNumber(uint64_t number) { callNumber = number; }
  bool isData() const final { return false; }
  std::string ToString() const final;

protected:
  void markRecorded() { recorded = true; }
  /// Reuses the node for a new call of its op, with operands whose hashes must
  /// equal those of the former operands.
  void renew(torch::lazy::OpList operands,
             c10::ArrayRef<DynamicScalar> scalars);

private:
  void noteLocation();

  bool inPlace = false;
  bool recorded = false;
  uint64_t callNumber = 0;
  const OpRecord &opRecord;
  AttributeListPtr attributeList;
  Hash128 signatureHash;
  c10::SmallVector<DynamicScalar, 1> dynamicScalars;
  LocationId sourceLocation = 0;
  ModulePathId sourceModule = 0;
};

/// Casts a node without a check, because all nodes of this backend are
/// GraphNodes.
inline const GraphNode *asGraphNode(const torch::lazy::Node *node) {
  return static_cast<const GraphNode *>(node);
}

/// An op's arguments as text: "dim=[1], keepdim=False".
std::string attributeText(const OpNode &node);

} // namespace torch_ltc

#endif // TORCH_LTC_IR_NODE_H
