//===- Convolution.cpp - Convolutions to library calls --------------------===//
//
// The three library calls (ltc.convolution and its two gradients) use the
// tensors of a forward convolution: input [n, c, ...], weight
// [o, c / groups, ...], output [n, o, ...]. A transposed convolution computes
// the gradient of a forward convolution's input from the output's gradient.
//
//===----------------------------------------------------------------------===//

#include "HostCall.h"
#include "OpArguments.h"

using namespace mlir;
using namespace mlir::torch_ltc;

/// Creates the library call `ConvolutionOp` with `operands`, which are in the
/// call's order.
template <typename ConvolutionOp>
static Value callLibrary(OpLowering &op, ValueRange operands,
                         ArrayRef<int64_t> resultSizes,
                         const ConvolutionArguments &arguments) {
  Type type = RankedTensorType::get(
      resultSizes,
      cast<RankedTensorType>(operands[0].getType()).getElementType());
  // If an operand has no elements, each element of the result is an empty sum.
  for (Value operand : operands)
    if (cast<RankedTensorType>(operand.getType()).getNumElements() == 0)
      return op.tensors.zeros(resultSizes, op.dtype(0));
  typename ConvolutionOp::Properties properties;
  Builder &b = op.builder;
  properties.setStride(b.getDenseI64ArrayAttr(arguments.stride));
  properties.setPadding(b.getDenseI64ArrayAttr(arguments.padding));
  properties.setDilation(b.getDenseI64ArrayAttr(arguments.dilation));
  properties.setGroups(b.getI64IntegerAttr(arguments.groups));
  return ConvolutionOp::create(op.builder, op.loc, TypeRange(type), operands,
                               properties)
      ->getResult(0);
}

/// Adds `bias` along dimension 1 of `result`.
static Value addBias(OpLowering &op, Value result, Value bias, Type dtype) {
  auto type = cast<RankedTensorType>(result.getType());
  SmallVector<int64_t> sizes(type.getRank() - 1, 1);
  sizes[0] = type.getDimSize(1);
  Type compute = computeDtypeOf(dtype);
  return op.tensors.elementwise(
      type.getShape(), type.getElementType(),
      {result, op.tensors.reshape(bias, sizes)},
      [&](OpBuilder &nested, Location loc, ValueRange inputs) {
        ScalarBuilder s(nested, loc, compute);
        Value sum = s.add(s.convert(inputs[0], dtype, compute),
                          s.convert(inputs[1], dtype, compute));
        return SmallVector<Value>{s.convert(sum, compute, dtype)};
      })[0];
}

static LogicalResult checkDtype(OpLowering &op) {
  if (isa<FloatType>(op.dtype(0)))
    return success();
  return op.fail("its dtype isn't a float");
}

/// convolution(input, weight, bias, stride, padding, dilation, transposed,
/// output_padding, groups)
static LogicalResult lowerConvolution(OpLowering &op) {
  if (!isa<FloatType>(op.dtype(0)))
    return lowerHostCall(op);
  ConvolutionArguments arguments(op, 3, op.rank(0) - 2);
  Value input = op.tensor(0), weight = op.tensor(1);
  bool hasBias = !op.isNone(2);
  if (arguments.transposed) {
    Value result = callLibrary<ltc::ConvolutionBackwardInputOp>(
        op, {input, weight}, op.resultSizes(), arguments);
    if (hasBias)
      result = addBias(op, result, op.tensor(2), op.resultDtype());
    return op.replaceWith(result);
  }
  SmallVector<Value> operands{input, weight};
  if (hasBias)
    operands.push_back(op.tensor(2));
  return op.replaceWith(callLibrary<ltc::ConvolutionOp>(
      op, operands, op.resultSizes(), arguments));
}

/// Returns the sum of the gradient over all dimensions except dimension 1.
static Value biasGradient(OpLowering &op, Value gradient, Type dtype) {
  int64_t rank = cast<RankedTensorType>(gradient.getType()).getRank();
  SmallVector<int64_t> dims{0};
  llvm::append_range(dims, llvm::seq<int64_t>(2, rank));
  Type compute = computeDtypeOf(dtype);
  ScalarBuilder outer(op.builder, op.loc, compute);
  Value sum = op.tensors.reduce(
      gradient, dims, outer.integer(0),
      [&](OpBuilder &nested, Location loc, ValueRange inputs,
          ValueRange accumulators) {
        ScalarBuilder s(nested, loc, compute);
        return SmallVector<Value>{
            s.add(accumulators[0], s.convert(inputs[0], dtype, compute))};
      })[0];
  return op.tensors.convert(sum, compute, dtype);
}

/// convolution_backward(grad_output, input, weight, bias_sizes, stride,
/// padding, dilation, transposed, output_padding, groups, output_mask)
static LogicalResult lowerConvolutionBackward(OpLowering &op) {
  if (failed(checkDtype(op)))
    return failure();
  ConvolutionArguments arguments(op, 4, op.rank(0) - 2);
  if (arguments.transposed)
    return op.fail("its transposed form isn't decomposed");
  SmallVector<int64_t> mask = op.integers(10);
  Value gradient = op.tensor(0), input = op.tensor(1), weight = op.tensor(2);
  SmallVector<Value> results;
  for (unsigned i = 0; i < 3; ++i) {
    if (!mask[i] || !op.isResultUsed(i)) {
      results.push_back(op.tensors.zeros(op.resultSizes(i), op.resultDtype(i)));
      continue;
    }
    if (i == 0)
      results.push_back(callLibrary<ltc::ConvolutionBackwardInputOp>(
          op, {gradient, weight}, op.resultSizes(0), arguments));
    if (i == 1)
      results.push_back(callLibrary<ltc::ConvolutionBackwardWeightOp>(
          op, {gradient, input}, op.resultSizes(1), arguments));
    if (i == 2)
      results.push_back(biasGradient(op, gradient, op.dtype(0)));
  }
  return op.replaceWith(results);
}

void torch_ltc::populateConvolutionLowerings(LoweringTable &table) {
  table.add("aten.convolution", lowerConvolution);
  table.add("aten.convolution_backward", lowerConvolutionBackward);
}
