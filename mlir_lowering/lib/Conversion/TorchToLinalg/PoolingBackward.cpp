//===- PoolingBackward.cpp - Gradients of poolings ------------------------===//
//
// The gradients are in gather form: each input element sums the contributions
// of the windows that contain it, so elements are independent of each other.
//
//===----------------------------------------------------------------------===//

#include "PoolingWindow.h"

using namespace mlir;
using namespace mlir::torch_ltc;

/// The gradient of each input element: the sum of `share` over the output
/// elements that may read it.
static LogicalResult
sumOverOutputs(OpLowering &op, const PoolingGeometry &geometry,
               function_ref<Value(ScalarBuilder &, IndexBuilder &,
                                  ValueRange input, ValueRange output)>
                   share) {
  Type dtype = op.resultDtype(), compute = computeDtypeOf(dtype);
  Value result = op.tensors.elementwise(
      op.resultSizes(), storageTypeOf(dtype), {},
      [&](OpBuilder &nested, Location loc, ValueRange) {
        IndexBuilder b(nested, loc);
        ScalarBuilder s(nested, loc, compute);
        SmallVector<Value> input =
            genericIndices(nested, loc, op.resultSizes().size());
        Value sum = geometry.forEachOutput(
            b, input, s.integer(0),
            [&](OpBuilder &inner, Location loc, ValueRange output,
                ValueRange carried) {
              ScalarBuilder s(inner, loc, compute);
              IndexBuilder b(inner, loc);
              Value part = share(s, b, input, output);
              return SmallVector<Value>{s.add(carried[0], part)};
            })[0];
        return SmallVector<Value>{s.convert(sum, compute, dtype)};
      })[0];
  return op.replaceWith(result);
}

/// Adds the whole gradient of a window to the element that the forward op
/// recorded in `indices`.
static LogicalResult lowerMaxBackward(OpLowering &op,
                                      const PoolingGeometry &geometry,
                                      Value indices) {
  Value gradient = op.tensor(0);
  return sumOverOutputs(
      op, geometry,
      [&](ScalarBuilder &s, IndexBuilder &b, ValueRange input,
          ValueRange output) {
        Value here = b.toInteger(
            geometry.flatPosition(b, input.drop_front(geometry.leading)));
        Value isSource = b.equal(b.extract(indices, output), here);
        Value share =
            s.convert(b.extract(gradient, output), op.dtype(0), s.dtype);
        return s.select(isSource, share, s.integer(0));
      });
}

/// max_pool2d_with_indices_backward(grad_output, self, kernel_size, stride,
/// padding, dilation, ceil_mode, indices)
static LogicalResult lowerMaxPoolBackward(OpLowering &op) {
  auto geometry =
      PoolingGeometry::read(op, op.sizes(1), op.sizes(0), 2, op.integers(5));
  return lowerMaxBackward(op, geometry, op.tensor(7));
}

/// adaptive_max_pool2d_backward(grad_output, self, indices)
static LogicalResult lowerAdaptiveMaxBackward(OpLowering &op) {
  auto geometry = PoolingGeometry::adaptive(op.sizes(1), op.sizes(0));
  return lowerMaxBackward(op, geometry, op.tensor(2));
}

/// Distributes the gradient of each window equally to the window's elements.
static LogicalResult lowerAverageBackward(OpLowering &op,
                                          const PoolingGeometry &geometry,
                                          bool countPadding,
                                          std::optional<int64_t> divisor) {
  Value gradient = op.tensor(0);
  Type countDtype =
      IntegerType::get(op.builder.getContext(), 64, IntegerType::Signed);
  return sumOverOutputs(
      op, geometry,
      [&](ScalarBuilder &s, IndexBuilder &b, ValueRange, ValueRange output) {
        Value share =
            s.convert(b.extract(gradient, output), op.dtype(0), s.dtype);
        Value count = divisor ? s.integer(*divisor)
                              : s.convert(b.toInteger(geometry.windowSize(
                                              b, output, countPadding)),
                                          countDtype, s.dtype);
        return s.div(share, count);
      });
}

/// avg_pool2d_backward(grad_output, self, kernel_size, stride, padding,
/// ceil_mode, count_include_pad, divisor_override)
static LogicalResult lowerAveragePoolBackward(OpLowering &op) {
  auto geometry = PoolingGeometry::read(op, op.sizes(1), op.sizes(0), 2, {1});
  return lowerAverageBackward(op, geometry, op.boolean(6),
                              op.optionalInteger(7));
}

/// _adaptive_avg_pool2d_backward(grad_output, self)
static LogicalResult lowerAdaptiveAverageBackward(OpLowering &op) {
  auto geometry = PoolingGeometry::adaptive(op.sizes(1), op.sizes(0));
  return lowerAverageBackward(op, geometry, false, std::nullopt);
}

void torch_ltc::populatePoolingBackwardLowerings(LoweringTable &table) {
  for (StringRef name : {"aten.max_pool2d_with_indices_backward",
                         "aten.max_pool3d_with_indices_backward"})
    table.add(name, lowerMaxPoolBackward);
  for (StringRef name :
       {"aten.avg_pool2d_backward", "aten.avg_pool3d_backward"})
    table.add(name, lowerAveragePoolBackward);
  table.add("aten._adaptive_avg_pool2d_backward", lowerAdaptiveAverageBackward);
  table.add("aten.adaptive_max_pool2d_backward", lowerAdaptiveMaxBackward);
}
