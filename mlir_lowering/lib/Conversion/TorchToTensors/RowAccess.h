//===- RowAccess.h - Reads and writes of table rows -------------*- C++ -*-===//
//
// The common part of indexing, scatters and sorting: a tensor is a table whose
// rows are addressed by positions from another tensor.
//
//===----------------------------------------------------------------------===//

#ifndef TORCH_LTC_CONVERSION_TORCHTOTENSORS_ROWACCESS_H
#define TORCH_LTC_CONVERSION_TORCHTOTENSORS_ROWACCESS_H

#include "TensorLowering.h"

namespace mlir::torch_ltc {

/// Type of positions: si32.
Type positionDtype(TensorLowering &op);
/// 0, 1, 2, ... as positions of these sizes, of which all but one are 1.
Value positionRange(TensorLowering &op, ArrayRef<int64_t> sizes);

/// Positions below `size` as si32, of any sizes; negative ones count from the
/// end if `wraps`.
Value positions(TensorLowering &op, Value indices, Type dtype, int64_t size,
                bool wraps);

/// [k, ...] at flat positions [w] -> [w, ...]
Value gatherRows(TensorLowering &op, Value table, Value rows);

/// `table` [b, r, w] with `values` [b, n, w] written to the rows `rows` [b, n]:
/// added to the existing values, or replacing them (for repeated rows the last
/// one wins). Positions outside [0, r) write nothing. Every row is compared
/// with all positions, because these dialects have no loops: b * r * n
/// comparisons.
Value writeRows(TensorLowering &op, Value table, Value rows, Value values,
                Type dtype, bool accumulate);

/// Dimension `dim` first, the others in order.
SmallVector<int64_t> firstOrder(int64_t rank, int64_t dim);
/// Dimension `dim` last.
SmallVector<int64_t> lastOrder(int64_t rank, int64_t dim);
SmallVector<int64_t> inversePermutation(ArrayRef<int64_t> order);

LogicalResult checkNotEmpty(TensorLowering &op);

/// The arguments self and indices of index.Tensor and index_put: the indexed
/// dimensions are moved to the front and merged into one dimension of rows.
struct RowIndex {
  /// self is this table's dimensions `order` ...
  SmallVector<int64_t> order;
  /// ... of which the first ones are merged: [rows, rest...].
  SmallVector<int64_t> tableSizes;
  /// Flat positions in the table.
  Value rows;
  /// [index dimensions..., rest...]; `back` restores PyTorch's order.
  SmallVector<int64_t> gatheredSizes, back;

  static FailureOr<RowIndex> read(TensorLowering &op);
};

} // namespace mlir::torch_ltc

#endif // TORCH_LTC_CONVERSION_TORCHTOTENSORS_ROWACCESS_H
