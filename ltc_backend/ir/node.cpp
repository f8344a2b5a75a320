//===- node.cpp - Nodes of the traced graph -------------------------------===//

#include "ir/node.h"

#include "config/config.h"
#include "source/traced_place.h"

#include <sstream>

using namespace torch_ltc;
using torch::lazy::NodePtr;
using torch::lazy::OpKind;

namespace {

// The references to operands that the outermost destructor on this thread
// drops, one after the other.
thread_local std::vector<NodePtr> *dying = nullptr;

const OpKind &dataKind() {
  static const auto *kind = new OpKind(OpKind::Get("torch_ltc::device_data"));
  return *kind;
}

} // namespace

GraphNode::~GraphNode() { releaseOperands(); }

void GraphNode::releaseOperands() {
  operands_as_outputs_.clear();
  if (operands_.empty())
    return;
  if (dying) {
    for (NodePtr &operand : operands_)
      dying->push_back(std::move(operand));
    operands_.clear();
    return;
  }
  std::vector<NodePtr> queue = std::move(operands_);
  dying = &queue;
  while (!queue.empty()) {
    NodePtr node = std::move(queue.back());
    queue.pop_back();
    node.reset(); // may append its operands
  }
  dying = nullptr;
  operands_ = std::move(queue);
}

static void addDTypeAndSizes(HashState &state,
                             const torch::lazy::Shape &shape) {
  state.add(uint64_t(shape.scalar_type()) << 8 | uint64_t(shape.dim()));
  for (int64_t size : shape.sizes())
    state.add(uint64_t(size));
}

DataNode::DataNode(HostDataPtr data)
    : GraphNode(dataKind(), data->shape()), dataPtr(std::move(data)) {
  HashState state(1);
  addDTypeAndSizes(state, dataPtr->shape());
  dagHash = state.finish();
}

std::string DataNode::ToString() const {
  std::ostringstream stream;
  // Includes the op's name, which torch 2.13 searches for when it draws a
  // graph.
  stream << shapes()[0].to_string() << " " << op().ToString();
  if (!dataPtr->name().empty())
    stream << " \"" << dataPtr->name() << "\"";
  return stream.str();
}

OpNode::OpNode(const OpRecord &record, torch::lazy::OpList operands,
               AttributeListPtr attributes,
               c10::ArrayRef<DynamicScalar> scalars,
               std::vector<torch::lazy::Shape> shapes)
    : GraphNode(record.opKind, operands, std::move(shapes), shapes.size()),
      opRecord(record), attributeList(std::move(attributes)),
      dynamicScalars(scalars.begin(), scalars.end()) {
  HashState own(6);
  own.add(attributeList->hash);
  for (const torch::lazy::Shape &shape : this->shapes())
    addDTypeAndSizes(own, shape);
  signatureHash = own.finish();
  HashState state(2);
  state.add(signatureHash);
  for (const torch::lazy::Value &operand : operands) {
    state.add(asGraphNode(operand.node.get())->dagHashValue());
    state.add(operand.index);
  }
  dagHash = state.finish();
  noteLocation();
}

void OpNode::renew(torch::lazy::OpList operands,
                   c10::ArrayRef<DynamicScalar> scalars) {
  for (const torch::lazy::Value &operand : operands) {
    operands_.push_back(operand.node);
    operands_as_outputs_.emplace_back(operand.node.get(), operand.index);
  }
  dynamicScalars.assign(scalars.begin(), scalars.end());
  inPlace = false;
  noteLocation();
}

void OpNode::noteLocation() {
  TracedPlace place;
  if (config().source_info.get())
    place = tracedPlace();
  sourceLocation = place.location;
  sourceModule = place.module;
}

std::string OpNode::ToString() const {
  std::ostringstream stream;
  for (size_t i = 0; i < shapes().size(); ++i)
    stream << (i ? ", " : "") << shapes()[i].to_string();
  stream << " " << record().name << "(" << attributeText(*this) << ")";
  if (location())
    stream << " # " << shortText(location());
  return stream.str();
}
