//===- Pooling.cpp - Pooling forward ops ----------------------------------===//
//
// Each op becomes one linalg.generic over the output; its body loops over the
// window.
//
//===----------------------------------------------------------------------===//

#include "PoolingWindow.h"

using namespace mlir;
using namespace mlir::torch_ltc;

/// The greatest element of each window and its position in the flattened
/// spatial input. As in torch, NaN is the greatest element, and the last NaN of
/// a window determines the position.
static SmallVector<Value> maxPool(OpLowering &op,
                                  const PoolingGeometry &geometry) {
  Type dtype = op.dtype(0);
  Type types[] = {storageTypeOf(dtype), op.builder.getI64Type()};
  Value input = op.tensor(0);
  size_t rank = op.resultSizes().size();
  return op.tensors.elementwise(
      op.resultSizes(), types, {},
      [&](OpBuilder &nested, Location loc, ValueRange) {
        IndexBuilder b(nested, loc);
        ScalarBuilder s(nested, loc, dtype);
        SmallVector<Value> output = genericIndices(nested, loc, rank);
        // If all elements are -inf, the position is that of the first one.
        SmallVector<Value> first;
        for (auto [dim, position] :
             llvm::zip(geometry.dims,
                       ArrayRef(output).drop_front(geometry.leading))) {
          WindowRange range = dim.inputsOf(b, position);
          first.push_back(b.add(range.base, b.mul(range.low, range.step)));
        }
        Value start = b.toInteger(geometry.flatPosition(b, first));
        return geometry.forEachInput(
            b, output, {s.lowest(), start},
            [&](OpBuilder &inner, Location loc, ValueRange position,
                ValueRange carried) {
              IndexBuilder b(inner, loc);
              ScalarBuilder s(inner, loc, dtype);
              Value x = b.extract(input, position);
              Value better = s.compare(Comparison::gt, x, carried[0]);
              if (s.isFloat())
                better = s.logicalOr(better, s.isNan(x));
              Value flat = b.toInteger(geometry.flatPosition(
                  b, position.drop_front(geometry.leading)));
              return SmallVector<Value>{s.select(better, x, carried[0]),
                                        s.select(better, flat, carried[1])};
            });
      });
}

/// max_pool2d_with_indices(self, kernel_size, stride, padding, dilation,
/// ceil_mode). The ops for 1 and 3 dimensions have the same arguments.
static LogicalResult lowerMaxPool(OpLowering &op) {
  auto geometry = PoolingGeometry::read(op, op.sizes(0), op.resultSizes(), 1,
                                        op.integers(4));
  return op.replaceWith(maxPool(op, geometry));
}

/// adaptive_max_pool2d(self, output_size)
static LogicalResult lowerAdaptiveMaxPool(OpLowering &op) {
  auto geometry = PoolingGeometry::adaptive(op.sizes(0), op.resultSizes());
  return op.replaceWith(maxPool(op, geometry));
}

/// The sum of each window, divided by the window's size or by `divisor`.
static Value averagePool(OpLowering &op, const PoolingGeometry &geometry,
                         bool countPadding, std::optional<int64_t> divisor) {
  Type dtype = op.dtype(0), compute = computeDtypeOf(dtype);
  Type countDtype =
      IntegerType::get(op.builder.getContext(), 64, IntegerType::Signed);
  Value input = op.tensor(0);
  return op.tensors.elementwise(
      op.resultSizes(), storageTypeOf(dtype), {},
      [&](OpBuilder &nested, Location loc, ValueRange) {
        IndexBuilder b(nested, loc);
        ScalarBuilder s(nested, loc, compute);
        SmallVector<Value> output =
            genericIndices(nested, loc, op.resultSizes().size());
        Value sum = geometry.forEachInput(
            b, output, s.integer(0),
            [&](OpBuilder &inner, Location loc, ValueRange position,
                ValueRange carried) {
              ScalarBuilder s(inner, loc, compute);
              Value x = IndexBuilder(inner, loc).extract(input, position);
              return SmallVector<Value>{
                  s.add(carried[0], s.convert(x, dtype, compute))};
            })[0];
        Value count = divisor ? s.integer(*divisor)
                              : s.convert(b.toInteger(geometry.windowSize(
                                              b, output, countPadding)),
                                          countDtype, compute);
        return SmallVector<Value>{s.convert(s.div(sum, count), compute, dtype)};
      })[0];
}

/// avg_pool2d(self, kernel_size, stride, padding, ceil_mode, count_include_pad,
/// divisor_override). avg_pool3d has the same arguments; avg_pool1d lacks
/// divisor_override.
static LogicalResult lowerAveragePool(OpLowering &op) {
  auto geometry =
      PoolingGeometry::read(op, op.sizes(0), op.resultSizes(), 1, {1});
  std::optional<int64_t> divisor;
  if (op.getNumOperands() > 6)
    divisor = op.optionalInteger(6);
  return op.replaceWith(averagePool(op, geometry, op.boolean(5), divisor));
}

/// _adaptive_avg_pool2d(self, output_size)
static LogicalResult lowerAdaptiveAveragePool(OpLowering &op) {
  auto geometry = PoolingGeometry::adaptive(op.sizes(0), op.resultSizes());
  return op.replaceWith(averagePool(op, geometry, false, std::nullopt));
}

void torch_ltc::populatePoolingLowerings(LoweringTable &table) {
  for (StringRef name :
       {"aten.max_pool1d_with_indices", "aten.max_pool2d_with_indices",
        "aten.max_pool3d_with_indices"})
    table.add(name, lowerMaxPool);
  for (StringRef name :
       {"aten.avg_pool1d", "aten.avg_pool2d", "aten.avg_pool3d"})
    table.add(name, lowerAveragePool);
  table.add("aten._adaptive_avg_pool2d", lowerAdaptiveAveragePool);
  table.add("aten.adaptive_max_pool2d", lowerAdaptiveMaxPool);
  populatePoolingBackwardLowerings(table);
}
