//===- AdvancedIndex.h - Lists of index tensors -----------------*- C++ -*-===//

#ifndef TORCH_LTC_CONVERSION_TORCHTOLINALG_ADVANCEDINDEX_H
#define TORCH_LTC_CONVERSION_TORCHTOLINALG_ADVANCEDINDEX_H

#include "IndexBuilder.h"
#include "OpLowering.h"

namespace mlir::torch_ltc {

/// The indices of `x[i, :, j]`: a tensor of integers, or none, for each of the
/// first dimensions of x. The index tensors are broadcast to one shape. If the
/// indexed dimensions are adjacent, the dimensions of this shape replace them
/// in the result; otherwise, the dimensions of this shape come first. The other
/// dimensions of x keep their order.
///
///   x: [5, 6, 7], indices [none, [2, 1], [3]]  -> [5, 2, 3]
///   x: [5, 6, 7], indices [[2, 1], none, [3]]  -> [2, 3, 6]
class AdvancedIndex {
public:
  /// Reads the list of index tensors, the argument `indices`; `tensorSizes` are
  /// the sizes of x. Emits an error if a tensor is a mask or the list has no
  /// tensors.
  static FailureOr<AdvancedIndex> read(OpLowering &op, Value indices,
                                       ArrayRef<int64_t> tensorSizes);

  /// Sizes of x[indices].
  ArrayRef<int64_t> getSizes() const { return sizes; }
  /// The index tensors, broadcastable to `getSizes()`.
  ArrayRef<Value> getTensors() const { return tensors; }

  /// The position in x of the result element at `position`; `elements` are the
  /// elements of the index tensors.
  SmallVector<Value> locate(IndexBuilder &b, ValueRange position,
                            ValueRange elements) const;

private:
  SmallVector<int64_t> tensorSizes, sizes;
  SmallVector<Value> tensors;
  /// For each dimension of x: position of its index tensor in `tensors`, or -1.
  SmallVector<int> tensorOfDim;
  /// For each dimension of x without an index tensor: its position in `sizes`.
  SmallVector<int64_t> placeOfDim;
};

/// Reads the element of `tensor` that is broadcast to `position`.
Value extractBroadcast(IndexBuilder &b, Value tensor, ValueRange position);

} // namespace mlir::torch_ltc

#endif // TORCH_LTC_CONVERSION_TORCHTOLINALG_ADVANCEDINDEX_H
