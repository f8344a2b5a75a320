//===- ir_builder.cpp - Nodes for torch::lazy's own code ------------------===//

#include "device/ir_builder.h"

#include "graph/live_tensors.h"
#include "ir/node.h"
#include "tracing/trace.h"

#include <ATen/Functions.h>

using namespace torch_ltc;
using c10::IValue;
using torch::lazy::NodePtr;
using torch::lazy::Value;

namespace {

NodePtr nodeOf(const at::Tensor &tensor) {
  return tensorDataOf(tensor)->value().node;
}

[[noreturn]] void throwUntraceable(const char *what) {
  TORCH_CHECK(false, "Device 'lazy' doesn't trace ", what, ".");
}

/// Creates the nodes of torch::lazy's own code: uploads and a few scalar
/// helpers. Our kernels create their nodes without this builder.
struct NodeBuilder final : torch::lazy::IrBuilder {
  NodePtr MakeDeviceData(
      const std::shared_ptr<torch::lazy::BackendData> &data) const override {
    return std::make_shared<DataNode>(std::static_pointer_cast<HostData>(data));
  }
  NodePtr MakeScalar(const at::Scalar &value,
                     const at::ScalarType &type) const override {
    at::Tensor tensor =
        at::scalar_tensor(value, at::TensorOptions().dtype(type));
    return std::make_shared<DataNode>(HostData::copyOf(tensor));
  }
  NodePtr MakeExpand(const Value &input, const std::vector<int64_t> &size,
                     const bool &) const override {
    return nodeOf(
        traceOp("aten::expand_copy", {makeTensor(input), IValue(size)}));
  }
  NodePtr MakeCast(const Value &input, const at::ScalarType &dtype,
                   const std::optional<at::ScalarType> &) const override {
    return nodeOf(
        traceOp("aten::_to_copy", {makeTensor(input), IValue(int64_t(dtype))}));
  }
  NodePtr MakeTensorList(const torch::lazy::OpList &) const override {
    throwUntraceable("lists as values");
  }
  NodePtr MakeGeneric(const torch::lazy::OpKind &op,
                      const torch::lazy::OpList &, const torch::lazy::Shape &,
                      const size_t &,
                      const torch::lazy::hash_t &) const override {
    throwUntraceable(op.ToString().c_str());
  }
  NodePtr MakeSizeNode(const Value &, size_t) const override {
    throwUntraceable("symbolic sizes");
  }
  NodePtr MakeSizeAdd(const Value &, const Value &) const override {
    throwUntraceable("symbolic sizes");
  }
  NodePtr MakeSizeMul(const Value &, const Value &) const override {
    throwUntraceable("symbolic sizes");
  }
  NodePtr MakeSizeDiv(const Value &, const Value &) const override {
    throwUntraceable("symbolic sizes");
  }
};

} // namespace

const torch::lazy::IrBuilder &torch_ltc::irBuilder() {
  static const auto *builder = new NodeBuilder;
  return *builder;
}
