//===- OpArguments.h - Arguments of torch ops, decoded ----------*- C++ -*-===//
//
// Decodes the arguments of ops, for the lowerings to linalg and for those to
// TOSA and StableHLO.
//
//===----------------------------------------------------------------------===//

#ifndef TORCH_LTC_CONVERSION_TORCHTOLINALG_OPARGUMENTS_H
#define TORCH_LTC_CONVERSION_TORCHTOLINALG_OPARGUMENTS_H

#include "OpLowering.h"

namespace mlir::torch_ltc {

/// The arguments stride, padding, dilation, transposed, output_padding, groups
/// of a convolution, which begin at position `first`. Each list has one element
/// for each spatial dimension.
struct ConvolutionArguments {
  SmallVector<int64_t> stride, padding, dilation;
  bool transposed;
  int64_t groups;

  ConvolutionArguments(const OpLowering &op, unsigned first,
                       int64_t spatialRank);
  size_t spatialRank() const { return stride.size(); }
};

/// permute(self, dims): result dimension i is dimension `permutation[i]`.
SmallVector<int64_t> permutationOf(const OpLowering &op);

/// The permutation of transpose.int(self, dim0, dim1), or of t(self) for a
/// matrix.
SmallVector<int64_t> transpositionOf(const OpLowering &op);

/// repeat(self, repeats): each dimension is split into [1, size], and then
/// broadcast to [repeats, size].
struct RepeatedSizes {
  SmallVector<int64_t> split, repeated;

  explicit RepeatedSizes(const OpLowering &op);
};

/// A slice's start or end, clamped to [0, size]. A negative `index` counts from
/// the end; without an index, `none` is used.
int64_t clampIndex(std::optional<int64_t> index, int64_t none, int64_t size);

/// The tensor arguments that an elementwise op reads element by element, once
/// each. A tensor that isn't broadcastable to the result is excluded, because
/// the scalar builder doesn't read it (for example, log_sigmoid_backward's
/// buffer).
SmallVector<Value> elementwiseTensors(const OpLowering &op);

} // namespace mlir::torch_ltc

#endif // TORCH_LTC_CONVERSION_TORCHTOLINALG_OPARGUMENTS_H
