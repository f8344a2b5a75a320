//===- OpArguments.h - Arguments of torch ops, decoded ----------*- C++ -*-===//
//
// What the lowerings to linalg and those to whole tensors both read from an
// op's arguments.
//
//===----------------------------------------------------------------------===//

#ifndef TORCH_LTC_CONVERSION_TORCHTOLINALG_OPARGUMENTS_H
#define TORCH_LTC_CONVERSION_TORCHTOLINALG_OPARGUMENTS_H

#include "OpLowering.h"

namespace mlir::torch_ltc {

/// Arguments stride, padding, dilation, transposed, output_padding, groups of a
/// convolution from position `first` on. Lists have one number for each spatial
/// dimension.
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

/// repeat(self, repeats): each dimension is split in two, the first of which is
/// broadcast.
struct RepeatedSizes {
  SmallVector<int64_t> split, repeated;

  explicit RepeatedSizes(const OpLowering &op);
};

/// A slice's start or end in [0, size]; negative ones count from the end.
/// `none`: the default.
int64_t clampIndex(std::optional<int64_t> index, int64_t none, int64_t size);

/// Positions of the tensors that an elementwise op reads element by element. A
/// tensor that isn't broadcastable to the result is one that the scalar builder
/// doesn't read (log_sigmoid's buffer).
SmallVector<unsigned> elementwiseOperands(const OpLowering &op);

} // namespace mlir::torch_ltc

#endif // TORCH_LTC_CONVERSION_TORCHTOLINALG_OPARGUMENTS_H
