//===- Permutations.cpp - Constant dims and permutations ------------------===//

#include "torch_ltc/Dialect/Torch/Permutations.h"
#include "torch_ltc/Dialect/Torch/TorchOps_data_movement.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::torch_ltc::torch;

std::optional<int64_t> torch_ltc::torch::constantDim(Value dim, int64_t rank) {
  auto constant = dim.getDefiningOp<ConstantIntOp>();
  if (!constant)
    return std::nullopt;
  int64_t position = constant.getValueAttr().getInt();
  if (position < 0)
    position += rank;
  if (position < 0 || position >= rank)
    return std::nullopt;
  return position;
}

using Order = std::optional<SmallVector<int64_t>>;

static Order orderOf(AtenPermuteOp op, int64_t rank) {
  auto dims = op.getDims().getDefiningOp<PrimListConstructOp>();
  if (!dims || int64_t(dims.getElements().size()) != rank)
    return std::nullopt;
  SmallVector<int64_t> order;
  for (Value element : dims.getElements()) {
    std::optional<int64_t> dim = constantDim(element, rank);
    if (!dim || llvm::is_contained(order, *dim))
      return std::nullopt;
    order.push_back(*dim);
  }
  return order;
}

static Order orderOf(AtenTransposeIntOp op, int64_t rank) {
  // PyTorch counts the dims of a tensor of rank 0 as if it had one.
  int64_t numDims = std::max<int64_t>(rank, 1);
  std::optional<int64_t> first = constantDim(op.getDim0(), numDims);
  std::optional<int64_t> second = constantDim(op.getDim1(), numDims);
  if (!first || !second)
    return std::nullopt;
  auto order = llvm::to_vector(llvm::seq<int64_t>(0, rank));
  if (rank > 0)
    std::swap(order[*first], order[*second]);
  return order;
}

static Order orderOf(AtenTOp, int64_t rank) {
  if (rank > 2)
    return std::nullopt;
  auto order = llvm::to_vector(llvm::seq<int64_t>(0, rank));
  std::reverse(order.begin(), order.end());
  return order;
}

std::optional<Permutation> torch_ltc::torch::permutationOf(Operation *op) {
  if (!op)
    return std::nullopt;
  return TypeSwitch<Operation *, std::optional<Permutation>>(op)
      .Case<AtenPermuteOp, AtenTransposeIntOp, AtenTOp>(
          [](auto permutation) -> std::optional<Permutation> {
            Value self = permutation.getSelf();
            auto type = cast<ValueTensorType>(self.getType());
            if (!type.isStatic())
              return std::nullopt;
            Order order = orderOf(permutation, type.getRank());
            if (!order)
              return std::nullopt;
            return Permutation{self, std::move(*order)};
          })
      .Default(std::nullopt);
}
