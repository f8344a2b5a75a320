//===- StridedView.h - Elements by index arithmetic -------------*- C++ -*-===//

#ifndef TORCH_LTC_CONVERSION_TORCHTOLINALG_STRIDEDVIEW_H
#define TORCH_LTC_CONVERSION_TORCHTOLINALG_STRIDEDVIEW_H

#include "OpLowering.h"

namespace mlir::torch_ltc {

/// The element of the flat source that a result index refers to.
struct StridedView {
  SmallVector<int64_t> sizes, strides;
  int64_t offset = 0;

  /// Whether all positions lie in a tensor of this many elements.
  bool isInBounds(int64_t elements) const;
  /// Positions of all elements, in row-major order.
  SmallVector<int64_t> positions() const;
};

/// Arguments size, stride, storage_offset from position `first` on. The
/// tracer's tensors are contiguous, so the storage has the tensor's elements in
/// row-major order.
StridedView readStrides(OpLowering &op, unsigned first);

/// Arguments offset, dim1, dim2 from position `first` on; the diagonal is the
/// last dimension.
StridedView readDiagonal(OpLowering &op, ArrayRef<int64_t> sizes,
                         unsigned first);

/// Sliding windows: arguments dim, size, step from position `first` on; the
/// window is the last dimension.
StridedView readWindows(OpLowering &op, ArrayRef<int64_t> sizes,
                        unsigned first);

/// The scale of an upsample_nearest, which torch computes in float32: the
/// quotient of the sizes, unless its reciprocal is given.
float nearestScale(int64_t input, int64_t output, std::optional<double> given);

/// The source row of each result row: floor(row * scale), in float32.
SmallVector<int64_t> nearestSources(int64_t input, int64_t output,
                                    std::optional<double> given);

} // namespace mlir::torch_ltc

#endif // TORCH_LTC_CONVERSION_TORCHTOLINALG_STRIDEDVIEW_H
