//===- Pooling.cpp - Pooling forward ops ----------------------------------===//
//
// Each op becomes one linalg.generic over the output; its body loops over the
// window.
//
//===----------------------------------------------------------------------===//

#include "PoolingWindow.h"

#include "torch_ltc/Dialect/Torch/TorchOps_pooling.h"

using namespace mlir;
using namespace mlir::torch_ltc;
using namespace mlir::torch_ltc::torch::ops;

/// The greatest element of each window and its position in the flattened
/// spatial input. As in torch, NaN is the greatest element, and the last NaN of
/// a window determines the position.
static SmallVector<Value> maxPool(OpLowering &op, Value self,
                                  const PoolingGeometry &geometry) {
  Type dtype = op.dtype(self);
  Type types[] = {storageTypeOf(dtype), op.builder.getI64Type()};
  Value input = op.tensor(self);
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

static LogicalResult lowerMaxPool(OpLowering &op,
                                  AtenMaxPool2dWithIndicesOp args) {
  Value self = args.getSelf();
  auto geometry =
      PoolingGeometry::read(op, args, op.sizes(self), op.resultSizes());
  return op.replaceWith(maxPool(op, self, geometry));
}

static LogicalResult lowerAdaptiveMaxPool(OpLowering &op,
                                          AtenAdaptiveMaxPool2dOp args) {
  Value self = args.getSelf();
  auto geometry = PoolingGeometry::adaptive(op.sizes(self), op.resultSizes());
  return op.replaceWith(maxPool(op, self, geometry));
}

/// The sum of each window, divided by the window's size or by `divisor`.
static Value averagePool(OpLowering &op, Value self,
                         const PoolingGeometry &geometry, bool countPadding,
                         std::optional<int64_t> divisor) {
  Type dtype = op.dtype(self), compute = computeDtypeOf(dtype);
  Type countDtype =
      IntegerType::get(op.builder.getContext(), 64, IntegerType::Signed);
  Value input = op.tensor(self);
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

static LogicalResult lowerAveragePool(OpLowering &op, AtenAvgPool2dOp args) {
  Value self = args.getSelf();
  auto geometry =
      PoolingGeometry::read(op, args, op.sizes(self), op.resultSizes());
  return op.replaceWith(
      averagePool(op, self, geometry, op.boolean(args.getCountIncludePad()),
                  op.optionalInteger(args.getDivisorOverride())));
}

static LogicalResult lowerAdaptiveAveragePool(OpLowering &op,
                                              Aten_AdaptiveAvgPool2dOp args) {
  Value self = args.getSelf();
  auto geometry = PoolingGeometry::adaptive(op.sizes(self), op.resultSizes());
  return op.replaceWith(averagePool(op, self, geometry, /*countPadding=*/false,
                                    /*divisor=*/std::nullopt));
}

void torch_ltc::populatePoolingLowerings(LoweringTable &table) {
  table.add(lowerMaxPool);
  table.add(lowerAveragePool);
  table.add(lowerAdaptiveAveragePool);
  table.add(lowerAdaptiveMaxPool);
  populatePoolingBackwardLowerings(table);
}
