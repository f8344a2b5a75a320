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

/// Reads the arguments size, stride, storage_offset, which begin at position
/// `first`. The tracer's tensors are contiguous, so the storage has the
/// tensor's elements in row-major order.
StridedView readStrides(OpLowering &op, unsigned first);

/// Reads the arguments offset, dim1, dim2, which begin at position `first`, for
/// a tensor of the sizes `sizes`; the diagonal is the view's last dimension.
StridedView readDiagonal(OpLowering &op, ArrayRef<int64_t> sizes,
                         unsigned first);

/// Reads the arguments dim, size, step of sliding windows, which begin at
/// position `first`; the window is the view's last dimension.
StridedView readWindows(OpLowering &op, ArrayRef<int64_t> sizes,
                        unsigned first);

/// The scale of an upsample_nearest, which torch computes in float32: input /
/// output, unless the reciprocal of the scale is given.
float nearestScale(int64_t input, int64_t output, std::optional<double> given);

/// The source row of each result row: floor(row * scale), in float32.
SmallVector<int64_t> nearestSources(int64_t input, int64_t output,
                                    std::optional<double> given);

} // namespace mlir::torch_ltc

#endif // TORCH_LTC_CONVERSION_TORCHTOLINALG_STRIDEDVIEW_H
