//===- OpArguments.cpp - Arguments of torch ops, decoded ------------------===//

#include "OpArguments.h"

using namespace mlir;
using namespace mlir::torch_ltc;

ConvolutionArguments::ConvolutionArguments(const OpLowering &op, unsigned first,
                                           int64_t spatialRank)
    : stride(op.integers(first)), padding(op.integers(first + 1)),
      dilation(op.integers(first + 2)), transposed(op.boolean(first + 3)),
      groups(op.integer(first + 5)) {
  for (SmallVector<int64_t> *list : {&stride, &padding, &dilation})
    if (list->size() == 1)
      list->assign(spatialRank, list->front());
}

SmallVector<int64_t> torch_ltc::permutationOf(const OpLowering &op) {
  SmallVector<int64_t> permutation = op.integers(1);
  for (int64_t &dim : permutation)
    dim += dim < 0 ? op.rank(0) : 0;
  return permutation;
}

SmallVector<int64_t> torch_ltc::transpositionOf(const OpLowering &op) {
  int64_t rank = op.rank(0);
  bool hasDims = op.getNumOperands() > 1;
  int64_t a = hasDims ? op.dimension(1, rank) : 0;
  int64_t b = hasDims ? op.dimension(2, rank) : 1;
  auto permutation = llvm::to_vector(llvm::seq<int64_t>(0, rank));
  std::swap(permutation[a], permutation[b]);
  return permutation;
}

RepeatedSizes::RepeatedSizes(const OpLowering &op) {
  SmallVector<int64_t> repeats = op.integers(1);
  size_t missing = repeats.size() - op.rank(0);
  for (auto [dim, count] : llvm::enumerate(repeats)) {
    int64_t size = dim < missing ? 1 : op.sizes(0)[dim - missing];
    split.append({1, size});
    repeated.append({count, size});
  }
}

int64_t torch_ltc::clampIndex(std::optional<int64_t> index, int64_t none,
                              int64_t size) {
  int64_t value = index.value_or(none);
  if (value < 0)
    value += size;
  return std::clamp<int64_t>(value, 0, size);
}

static bool isBroadcastable(ArrayRef<int64_t> from, ArrayRef<int64_t> to) {
  if (from.size() > to.size())
    return false;
  for (auto [a, b] : llvm::zip(llvm::reverse(from), llvm::reverse(to)))
    if (a != b && a != 1)
      return false;
  return true;
}

SmallVector<Value> torch_ltc::elementwiseTensors(const OpLowering &op) {
  SmallVector<Value> tensors;
  for (Value argument : op.getArguments())
    if (op.isTensor(argument) && !op.tensorAsNumber(argument) &&
        isBroadcastable(op.sizes(argument), op.resultSizes()) &&
        !llvm::is_contained(tensors, argument))
      tensors.push_back(argument);
  return tensors;
}
