//===- PoolingWindow.h - Inputs of a pooled element -------------*- C++ -*-===//
//
// Along each spatial dimension, one output element of a pooling reads the input
// positions base + k * step for k in [low, high). The bounds exclude the
// padding, so that no padded copy of the input is needed.
//
//===----------------------------------------------------------------------===//

#ifndef TORCH_LTC_CONVERSION_TORCHTOLINALG_POOLINGWINDOW_H
#define TORCH_LTC_CONVERSION_TORCHTOLINALG_POOLINGWINDOW_H

#include "IndexBuilder.h"
#include "OpLowering.h"

namespace mlir::torch_ltc {

struct WindowRange {
  Value low, high, base;
  int64_t step;
};

/// One spatial dimension.
struct PoolingDim {
  int64_t input, output;
  /// Unused if adaptive: then output element o reads the inputs in [floor(o *
  /// input / output), ceil((o + 1) * input / output)).
  int64_t kernel = 1, stride = 1, padding = 0, dilation = 1;
  bool adaptive = false;

  WindowRange inputsOf(IndexBuilder &b, Value output) const;
  /// A range of output positions that contains all those that read this input
  /// (with a dilation also some that don't).
  std::pair<Value, Value> outputsSeeing(IndexBuilder &b, Value input) const;
  /// Number of positions that an average divides by: those of the window, with
  /// or without the padding.
  Value windowSize(IndexBuilder &b, Value output, bool countPadding) const;
};

struct PoolingGeometry {
  /// Dimensions before the spatial ones: [n, c] or [c].
  int64_t leading;
  SmallVector<PoolingDim> dims;

  /// Arguments kernel_size, stride, padding from position `first` on; dilation
  /// is passed as a list.
  static PoolingGeometry read(OpLowering &op, ArrayRef<int64_t> input,
                              ArrayRef<int64_t> output, unsigned first,
                              SmallVector<int64_t> dilation);
  static PoolingGeometry adaptive(ArrayRef<int64_t> input,
                                  ArrayRef<int64_t> output);

  /// Position in the flat spatial input.
  Value flatPosition(IndexBuilder &b, ValueRange spatial) const;
  /// Product of the windows' sizes.
  Value windowSize(IndexBuilder &b, ValueRange output, bool countPadding) const;

  /// Emits `body(input position, carried values) -> new values` for each input
  /// that output element `output` (all its indices) reads.
  SmallVector<Value>
  forEachInput(IndexBuilder &b, ValueRange output, ValueRange carried,
               function_ref<SmallVector<Value>(OpBuilder &, Location,
                                               ValueRange, ValueRange)>
                   body) const;
  /// The same for each output element that may read an input element.
  SmallVector<Value>
  forEachOutput(IndexBuilder &b, ValueRange input, ValueRange carried,
                function_ref<SmallVector<Value>(OpBuilder &, Location,
                                                ValueRange, ValueRange)>
                    body) const;
};

/// The indices of the enclosing linalg.generic.
SmallVector<Value> genericIndices(OpBuilder &builder, Location loc,
                                  size_t rank);

void populatePoolingBackwardLowerings(LoweringTable &table);

} // namespace mlir::torch_ltc

#endif // TORCH_LTC_CONVERSION_TORCHTOLINALG_POOLINGWINDOW_H
