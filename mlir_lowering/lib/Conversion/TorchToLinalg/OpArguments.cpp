//===- OpArguments.cpp - Arguments of torch ops, decoded ------------------===//

#include "OpArguments.h"

using namespace mlir;
using namespace mlir::torch_ltc;

SmallVector<int64_t> torch_ltc::permutationOf(const OpLowering &op,
                                              torch::AtenPermuteOp args) {
  SmallVector<int64_t> permutation = op.integers(args.getDims());
  for (int64_t &dim : permutation)
    dim += dim < 0 ? op.rank(args.getSelf()) : 0;
  return permutation;
}

static SmallVector<int64_t> exchanged(int64_t a, int64_t b, int64_t rank) {
  auto permutation = llvm::to_vector(llvm::seq<int64_t>(0, rank));
  std::swap(permutation[a], permutation[b]);
  return permutation;
}

SmallVector<int64_t> torch_ltc::permutationOf(const OpLowering &op,
                                              torch::AtenTransposeIntOp args) {
  int64_t rank = op.rank(args.getSelf());
  return exchanged(op.dimension(args.getDim0(), rank),
                   op.dimension(args.getDim1(), rank), rank);
}

SmallVector<int64_t> torch_ltc::permutationOf(const OpLowering &op,
                                              torch::AtenTOp args) {
  return exchanged(0, 1, op.rank(args.getSelf()));
}

RepeatedSizes::RepeatedSizes(const OpLowering &op, torch::AtenRepeatOp args) {
  ArrayRef<int64_t> sizes = op.sizes(args.getSelf());
  SmallVector<int64_t> repeats = op.integers(args.getRepeats());
  size_t missing = repeats.size() - sizes.size();
  for (auto [dim, count] : llvm::enumerate(repeats)) {
    int64_t size = dim < missing ? 1 : sizes[dim - missing];
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
