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
  /// Unused if `adaptive`; output element o then reads the inputs in [floor(o *
  /// input / output), ceil((o + 1) * input / output)).
  int64_t kernel = 1, stride = 1, padding = 0, dilation = 1;
  bool adaptive = false;
  /// Whether the last window may extend beyond the padded input. In a program
  /// for all sizes, it depends on the size whether it does.
  bool mayExtend = false;

  WindowRange inputsOf(IndexBuilder &b, Value output) const;
  /// A range [first, end) with all output positions that read this input. With
  /// a dilation, it also contains positions that don't read the input.
  std::pair<Value, Value> outputsSeeing(IndexBuilder &b, Value input) const;
  /// The divisor of an average: the number of the window's positions, with or
  /// without the padding.
  Value windowSize(IndexBuilder &b, Value output, bool countPadding) const;
};

struct PoolingGeometry {
  /// Number of dimensions before the spatial ones: 2 for [n, c], 1 for [c].
  int64_t leading;
  SmallVector<PoolingDim> dims;

  /// The geometry of a pooling with the arguments `args` of its op or of the
  /// gradient's. `input` and `output` are sizes.
  template <typename OpTy>
  static PoolingGeometry read(const OpLowering &op, OpTy args,
                              ArrayRef<int64_t> input,
                              ArrayRef<int64_t> output) {
    SmallVector<int64_t> dilation{1};
    if constexpr (requires { args.getDilation(); })
      dilation = op.integers(args.getDilation());
    return ofWindows(op, input, output, op.integers(args.getKernelSize()),
                     op.integers(args.getStride()),
                     op.integers(args.getPadding()), dilation,
                     op.boolean(args.getCeilMode()));
  }
  static PoolingGeometry adaptive(ArrayRef<int64_t> input,
                                  ArrayRef<int64_t> output);

  /// Position in the flattened spatial input.
  Value flatPosition(IndexBuilder &b, ValueRange spatial) const;
  /// Product of the dimensions' window sizes.
  Value windowSize(IndexBuilder &b, ValueRange output, bool countPadding) const;

  /// Emits `body(input position, carried values) -> new values` for each input
  /// that output element `output` (all its indices) reads.
  SmallVector<Value>
  forEachInput(IndexBuilder &b, ValueRange output, ValueRange carried,
               function_ref<SmallVector<Value>(OpBuilder &, Location,
                                               ValueRange, ValueRange)>
                   body) const;
  /// Emits `body(output position, carried values) -> new values` for each
  /// output element that may read input element `input` (all its indices).
  SmallVector<Value>
  forEachOutput(IndexBuilder &b, ValueRange input, ValueRange carried,
                function_ref<SmallVector<Value>(OpBuilder &, Location,
                                                ValueRange, ValueRange)>
                    body) const;

private:
  /// Each list has one element for each of the two spatial dimensions, or one
  /// for both.
  static PoolingGeometry
  ofWindows(const OpLowering &op, ArrayRef<int64_t> input,
            ArrayRef<int64_t> output, ArrayRef<int64_t> kernel,
            ArrayRef<int64_t> stride, ArrayRef<int64_t> padding,
            ArrayRef<int64_t> dilation, bool ceilMode);
};

/// The indices of the enclosing linalg.generic.
SmallVector<Value> genericIndices(OpBuilder &builder, Location loc,
                                  size_t rank);

void populatePoolingBackwardLowerings(LoweringTable &table);

} // namespace mlir::torch_ltc

#endif // TORCH_LTC_CONVERSION_TORCHTOLINALG_POOLINGWINDOW_H
