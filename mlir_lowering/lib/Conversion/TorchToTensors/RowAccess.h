//===- RowAccess.h - Reads and writes of table rows -------------*- C++ -*-===//
//
// The common part of indexing, scatters and sorting: it treats a tensor as a
// table whose rows are addressed by positions from another tensor.
//
//===----------------------------------------------------------------------===//

#ifndef TORCH_LTC_CONVERSION_TORCHTOTENSORS_ROWACCESS_H
#define TORCH_LTC_CONVERSION_TORCHTOTENSORS_ROWACCESS_H

#include "TensorLowering.h"

namespace mlir::torch_ltc {

/// The dtype of positions: si32.
Type positionDtype(TensorLowering &op);
/// The positions 0, 1, 2, ... in a tensor of the sizes `sizes`, of which all
/// but one are 1.
Value positionRange(TensorLowering &op, ArrayRef<int64_t> sizes);

/// Converts `indices`, a tensor of integers, to si32 positions, clamped to
/// [0, size). If `wraps`, negative indices count from the end.
Value positions(TensorLowering &op, Value indices, Type dtype, int64_t size,
                bool wraps);

/// Gathers the rows of `table` [k, ...] at the positions `rows` [w]; returns
/// [w, ...].
Value gatherRows(TensorLowering &op, Value table, Value rows);

/// Writes `values` [b, n, w] to the rows `rows` [b, n] of `table` [b, r, w]:
/// adds them to the existing values if `accumulate`, otherwise replaces the
/// existing values (the last value for a repeated row wins). Positions outside
/// [0, r) write nothing. Each row is compared with all positions, because these
/// dialects have no loops: b * r * n comparisons.
Value writeRows(TensorLowering &op, Value table, Value rows, Value values,
                Type dtype, bool accumulate);

/// The permutation that moves dimension `dim` to the front.
SmallVector<int64_t> firstOrder(int64_t rank, int64_t dim);
/// The permutation that moves dimension `dim` to the end.
SmallVector<int64_t> lastOrder(int64_t rank, int64_t dim);
SmallVector<int64_t> inversePermutation(ArrayRef<int64_t> order);

LogicalResult checkNotEmpty(TensorLowering &op);

/// The indices of index.Tensor and index_put: in the indexed tensor, the
/// indexed dimensions are moved to the front and merged into one dimension of
/// rows.
struct RowIndex {
  /// The permutation of self's dimensions that moves the indexed ones to the
  /// front.
  SmallVector<int64_t> order;
  /// The table's sizes, with merged indexed dimensions: [rows, rest...].
  SmallVector<int64_t> tableSizes;
  /// The positions of the rows that the indices select, flattened.
  Value rows;
  /// The sizes of the gathered rows, [index dimensions..., rest...], and the
  /// permutation that restores PyTorch's order of dimensions.
  SmallVector<int64_t> gatheredSizes, back;

  /// `self` and `list` (indices) are arguments of the op.
  static FailureOr<RowIndex> read(TensorLowering &op, Value self, Value list);
};

} // namespace mlir::torch_ltc

#endif // TORCH_LTC_CONVERSION_TORCHTOTENSORS_ROWACCESS_H
