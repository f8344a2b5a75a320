//===- cheap_values.cpp - Values that are computed alone ------------------===//

#include "execution/cheap_values.h"

#include "ir/node.h"

#include <algorithm>
#include <vector>

using namespace torch_ltc;

std::optional<int64_t>
torch_ltc::numCheapOps(c10::ArrayRef<TensorDataPtr> wanted) {
  constexpr size_t kMaxOps = 6;
  std::vector<torch::lazy::NodePtr> ops;
  auto add = [&ops](const torch::lazy::NodePtr &node) {
    if (node && !asGraphNode(node.get())->isData() &&
        std::ranges::find(ops, node) == ops.end())
      ops.push_back(node);
  };
  for (const TensorDataPtr &tensor : wanted) {
    torch::lazy::Value value = tensor->value();
    if (!c10::isIntegralType(value.shape().scalar_type(), /*includeBool=*/true))
      return std::nullopt;
    add(value.node);
  }
  for (size_t i = 0; i < ops.size(); ++i) {
    const auto &op = static_cast<const OpNode &>(*ops[i]);
    Family family = op.record().family;
    if (ops.size() > kMaxOps ||
        (family != Family::elementwise && family != Family::reduction &&
         family != Family::data_movement))
      return std::nullopt;
    for (size_t k = 0; k < op.numOperands(); ++k)
      add(op.operandNode(k));
  }
  return int64_t(ops.size());
}
