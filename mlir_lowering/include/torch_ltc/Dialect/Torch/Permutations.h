//===- Permutations.h - Constant dims and permutations ----------*- C++ -*-===//

#ifndef TORCH_LTC_DIALECT_TORCH_PERMUTATIONS_H
#define TORCH_LTC_DIALECT_TORCH_PERMUTATIONS_H

#include "mlir/IR/Operation.h"

#include <optional>

namespace mlir::torch_ltc::torch {

/// A dim of a tensor of rank `rank`, counted from the front. Returns nullopt if
/// it isn't a constant or is out of range.
std::optional<int64_t> constantDim(Value dim, int64_t rank);

/// Dim i of the result is dim `order[i]` of `self`.
struct Permutation {
  Value self;
  SmallVector<int64_t> order;
};

/// Returns the permutation that a permute, transpose.int or t makes. Returns
/// nullopt if `op` is null or another op, if its operand has unknown sizes, or
/// if its dims aren't constants or aren't a permutation.
std::optional<Permutation> permutationOf(Operation *op);

} // namespace mlir::torch_ltc::torch

#endif // TORCH_LTC_DIALECT_TORCH_PERMUTATIONS_H
