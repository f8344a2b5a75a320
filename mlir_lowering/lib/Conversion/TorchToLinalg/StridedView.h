//===- StridedView.h - Elements by index arithmetic -------------*- C++ -*-===//

#ifndef TORCH_LTC_CONVERSION_TORCHTOLINALG_STRIDEDVIEW_H
#define TORCH_LTC_CONVERSION_TORCHTOLINALG_STRIDEDVIEW_H

#include "OpLowering.h"

namespace mlir::torch_ltc {

/// A map from the indices of a result to positions in the flattened source:
/// offset + sum of indices[i] * strides[i].
struct StridedView {
  SmallVector<int64_t> sizes, strides;
  int64_t offset = 0;

  /// Whether all positions lie in a tensor of `elements` elements.
  bool isInBounds(int64_t elements) const;
  /// Positions of all elements, in row-major order.
  SmallVector<int64_t> positions() const;
};

/// The diagonal of a tensor of the sizes `sizes`; it is the view's last
/// dimension.
StridedView diagonalOf(ArrayRef<int64_t> sizes, int64_t offset, int64_t dim1,
                       int64_t dim2);

/// The sliding windows along a dimension of a tensor of the sizes `sizes`; the
/// window is the view's last dimension.
StridedView windowsOf(ArrayRef<int64_t> sizes, int64_t dim, int64_t size,
                      int64_t step);

/// The view that an as_strided refers to. The tracer's tensors are contiguous,
/// so the storage has the tensor's elements in row-major order.
template <typename OpTy>
StridedView readStrides(const OpLowering &op, OpTy args) {
  return {op.integers(args.getSize()), op.integers(args.getStride()),
          op.optionalInteger(args.getStorageOffset()).value_or(0)};
}

/// The diagonal that an op reads or writes in a tensor of the sizes `sizes`.
template <typename OpTy>
StridedView readDiagonal(const OpLowering &op, OpTy args,
                         ArrayRef<int64_t> sizes) {
  return diagonalOf(sizes, op.integer(args.getOffset()),
                    op.dimension(args.getDim1(), sizes.size()),
                    op.dimension(args.getDim2(), sizes.size()));
}

/// The scale of an upsample_nearest, which torch computes in float32: input /
/// output, unless the reciprocal of the scale is given.
float nearestScale(int64_t input, int64_t output, std::optional<double> given);

/// The source row of each result row: floor(row * scale), in float32.
SmallVector<int64_t> nearestSources(int64_t input, int64_t output,
                                    std::optional<double> given);

} // namespace mlir::torch_ltc

#endif // TORCH_LTC_CONVERSION_TORCHTOLINALG_STRIDEDVIEW_H
