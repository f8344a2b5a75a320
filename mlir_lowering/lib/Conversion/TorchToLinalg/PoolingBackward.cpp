//===- PoolingBackward.cpp - Gradients of poolings ------------------------===//
//
// The gradients are in gather form: each input element sums the contributions
// of the windows that contain it, so elements are independent of each other.
//
//===----------------------------------------------------------------------===//

#include "PoolingWindow.h"

#include "torch_ltc/Dialect/Torch/TorchOps_pooling.h"

using namespace mlir;
using namespace mlir::torch_ltc;
using namespace mlir::torch_ltc::torch::ops;

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
/// recorded in `args.getIndices()`.
template <typename OpTy>
static LogicalResult lowerMaxBackward(OpLowering &op, OpTy args,
                                      const PoolingGeometry &geometry) {
  Value gradient = op.tensor(args.getGradOutput());
  Value indices = op.tensor(args.getIndices());
  Type dtype = op.dtype(args.getGradOutput());
  return sumOverOutputs(
      op, geometry,
      [&](ScalarBuilder &s, IndexBuilder &b, ValueRange input,
          ValueRange output) {
        Value here = b.toInteger(
            geometry.flatPosition(b, input.drop_front(geometry.leading)));
        Value isSource = b.equal(b.extract(indices, output), here);
        Value share = s.convert(b.extract(gradient, output), dtype, s.dtype);
        return s.select(isSource, share, s.integer(0));
      });
}

static LogicalResult
lowerMaxPoolBackward(OpLowering &op, AtenMaxPool2dWithIndicesBackwardOp args) {
  return lowerMaxBackward(
      op, args,
      PoolingGeometry::read(op, args, op.sizes(args.getSelf()),
                            op.sizes(args.getGradOutput())));
}

static LogicalResult
lowerAdaptiveMaxBackward(OpLowering &op, AtenAdaptiveMaxPool2dBackwardOp args) {
  return lowerMaxBackward(
      op, args,
      PoolingGeometry::adaptive(op.sizes(args.getSelf()),
                                op.sizes(args.getGradOutput())));
}

/// Distributes the gradient of each window equally to the window's elements.
static LogicalResult lowerAverageBackward(OpLowering &op, Value gradOutput,
                                          const PoolingGeometry &geometry,
                                          bool countPadding,
                                          std::optional<int64_t> divisor) {
  Value gradient = op.tensor(gradOutput);
  Type dtype = op.dtype(gradOutput);
  Type countDtype =
      IntegerType::get(op.builder.getContext(), 64, IntegerType::Signed);
  return sumOverOutputs(
      op, geometry,
      [&](ScalarBuilder &s, IndexBuilder &b, ValueRange, ValueRange output) {
        Value share = s.convert(b.extract(gradient, output), dtype, s.dtype);
        Value count = divisor ? s.integer(*divisor)
                              : s.convert(b.toInteger(geometry.windowSize(
                                              b, output, countPadding)),
                                          countDtype, s.dtype);
        return s.div(share, count);
      });
}

static LogicalResult lowerAveragePoolBackward(OpLowering &op,
                                              AtenAvgPool2dBackwardOp args) {
  Value gradOutput = args.getGradOutput();
  auto geometry = PoolingGeometry::read(op, args, op.sizes(args.getSelf()),
                                        op.sizes(gradOutput));
  return lowerAverageBackward(op, gradOutput, geometry,
                              op.boolean(args.getCountIncludePad()),
                              op.optionalInteger(args.getDivisorOverride()));
}

static LogicalResult
lowerAdaptiveAverageBackward(OpLowering &op,
                             Aten_AdaptiveAvgPool2dBackwardOp args) {
  Value gradOutput = args.getGradOutput();
  auto geometry =
      PoolingGeometry::adaptive(op.sizes(args.getSelf()), op.sizes(gradOutput));
  return lowerAverageBackward(op, gradOutput, geometry, /*countPadding=*/false,
                              /*divisor=*/std::nullopt);
}

void torch_ltc::populatePoolingBackwardLowerings(LoweringTable &table) {
  table.add(lowerMaxPoolBackward);
  table.add(lowerAveragePoolBackward);
  table.add(lowerAdaptiveAverageBackward);
  table.add(lowerAdaptiveMaxBackward);
}
