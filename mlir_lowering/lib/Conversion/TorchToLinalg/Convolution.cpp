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

#include "torch_ltc/Dialect/Torch/TorchOps_convolution.h"

using namespace mlir;
using namespace mlir::torch_ltc;
using namespace mlir::torch_ltc::torch::ops;

/// Creates the library call `ConvolutionOp` with `operands`, which are in the
/// call's order.
template <typename ConvolutionOp>
static Value callLibrary(OpLowering &op, ValueRange operands,
                         ArrayRef<int64_t> resultSizes,
                         const ConvolutionArguments &arguments) {
  auto type = RankedTensorType::get(
      resultSizes,
      cast<RankedTensorType>(operands[0].getType()).getElementType());
  // If an operand has no elements, each element of the result is an empty sum.
  for (Value operand : operands)
    if (cast<RankedTensorType>(operand.getType()).getNumElements() == 0)
      return op.tensors.zeros(resultSizes, type.getElementType());
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

static LogicalResult lowerConvolution(OpLowering &op, AtenConvolutionOp args) {
  if (!isa<FloatType>(op.dtype(args.getInput())))
    return lowerHostCall(op);
  ConvolutionArguments arguments(op, args);
  Value input = op.tensor(args.getInput());
  Value weight = op.tensor(args.getWeight());
  bool hasBias = !op.isNone(args.getBias());
  if (arguments.transposed) {
    Value result = callLibrary<ltc::ConvolutionBackwardInputOp>(
        op, {input, weight}, op.resultSizes(), arguments);
    if (hasBias)
      result = addBias(op, result, op.tensor(args.getBias()), op.resultDtype());
    return op.replaceWith(result);
  }
  SmallVector<Value> operands{input, weight};
  if (hasBias)
    operands.push_back(op.tensor(args.getBias()));
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

static LogicalResult lowerConvolutionBackward(OpLowering &op,
                                              AtenConvolutionBackwardOp args) {
  Type dtype = op.dtype(args.getGradOutput());
  if (!isa<FloatType>(dtype))
    return op.fail("its dtype isn't a float");
  ConvolutionArguments arguments(op, args);
  if (arguments.transposed)
    return op.fail("its transposed form isn't decomposed");
  SmallVector<int64_t> mask = op.integers(args.getOutputMask());
  Value gradient = op.tensor(args.getGradOutput());
  Value input = op.tensor(args.getInput());
  Value weight = op.tensor(args.getWeight());
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
      results.push_back(biasGradient(op, gradient, dtype));
  }
  return op.replaceWith(results);
}

void torch_ltc::populateConvolutionLowerings(LoweringTable &table) {
  table.add(lowerConvolution);
  table.add(lowerConvolutionBackward);
}
