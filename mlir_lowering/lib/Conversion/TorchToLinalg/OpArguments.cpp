//===- OpArguments.cpp - Arguments of torch ops, decoded ------------------===//

#include "OpArguments.h"

#include "torch_ltc/Dialect/Torch/Permutations.h"

using namespace mlir;
using namespace mlir::torch_ltc;

SmallVector<int64_t> torch_ltc::permutationOf(const OpLowering &op) {
  if (auto permutation = torch::permutationOf(op.op))
    return permutation->order;
  op.contradict();
  int64_t rank = op.rank(op.getArguments().front());
  return llvm::to_vector(llvm::seq<int64_t>(0, rank));
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
