//===- Convolution.cpp - Convolutions and their gradients on tensors ------===//
//
// A convolution of an input [n, c, ...] with a weight [o, c / groups, ...] has
// an output [n, o, ...]. The output and both gradients are convolutions of one
// tensor with another:
//
// - For the output, the input is convolved with the weight.
// - For the input's gradient, the output's gradient, dilated by `stride`, is
//   convolved with the weight, with reversed taps and exchanged channels.
// - For the weight's gradient, the input is convolved with the output's
//   gradient. The batch is the reduced dimension, and stride and dilation are
//   exchanged.
//
// A transposed convolution computes the gradient of a forward convolution's
// input.
//
//===----------------------------------------------------------------------===//

#include "TensorLowering.h"

#include "../TorchToLinalg/OpArguments.h"

#include "torch_ltc/Dialect/Torch/TorchOps_convolution.h"

using namespace mlir;
using namespace mlir::torch_ltc;
using namespace mlir::torch_ltc::torch::ops;

static SmallVector<int64_t> ones(size_t count) {
  return SmallVector<int64_t>(count, 1);
}

static Value output(TensorLowering &op, Value input, Value weight,
                    const ConvolutionArguments &arguments) {
  ConvolutionWindow window;
  window.stride = arguments.stride;
  window.padLow = window.padHigh = arguments.padding;
  window.inputDilation = ones(arguments.spatialRank());
  window.weightDilation = arguments.dilation;
  window.groups = arguments.groups;
  return op.target.convolve(input, weight, window);
}

/// Rearranges a weight [o, c / g, ...] to [c, o / g, ...].
static Value exchangeChannels(TensorLowering &op, Value weight,
                              int64_t groups) {
  SmallVector<int64_t> sizes(TensorTarget::sizesOf(weight));
  int64_t outputs = sizes[0] / groups, inputs = sizes[1];
  SmallVector<int64_t> apart{groups, outputs, inputs};
  apart.append(sizes.begin() + 2, sizes.end());
  auto order = llvm::to_vector(llvm::seq<int64_t>(0, apart.size()));
  std::swap(order[1], order[2]);
  Value swapped = op.target.transpose(op.target.reshape(weight, apart), order);
  sizes[0] = groups * inputs;
  sizes[1] = outputs;
  return op.target.reshape(swapped, sizes);
}

static Value inputGradient(TensorLowering &op, Value gradient, Value weight,
                           ArrayRef<int64_t> inputSizes,
                           const ConvolutionArguments &arguments) {
  size_t rank = arguments.spatialRank();
  ConvolutionWindow window;
  window.stride = ones(rank);
  window.inputDilation = arguments.stride;
  window.weightDilation = arguments.dilation;
  window.groups = arguments.groups;
  for (size_t i = 0; i < rank; ++i) {
    int64_t reach =
        arguments.dilation[i] * (TensorTarget::sizesOf(weight)[i + 2] - 1);
    int64_t low = reach - arguments.padding[i];
    int64_t dilated =
        (TensorTarget::sizesOf(gradient)[i + 2] - 1) * arguments.stride[i] + 1;
    window.padLow.push_back(low);
    window.padHigh.push_back(inputSizes[i + 2] - dilated - low + reach);
  }
  auto spatial = llvm::to_vector(llvm::seq<int64_t>(2, rank + 2));
  Value reversed = op.target.reverse(weight, spatial);
  return op.target.convolve(
      gradient, exchangeChannels(op, reversed, arguments.groups), window);
}

static Value exchangeFirst(TensorLowering &op, Value tensor) {
  auto order = llvm::to_vector(
      llvm::seq<int64_t>(0, TensorTarget::typeOf(tensor).getRank()));
  std::swap(order[0], order[1]);
  return op.target.transpose(tensor, order);
}

/// Channels [first, first + count) of a tensor.
static Value channels(TensorLowering &op, Value tensor, int64_t first,
                      int64_t count) {
  SmallVector<int64_t> sizes(TensorTarget::sizesOf(tensor));
  SmallVector<int64_t> offsets(sizes.size(), 0);
  if (sizes[1] == count)
    return tensor;
  offsets[1] = first;
  sizes[1] = count;
  return op.target.slice(tensor, offsets, sizes, ones(sizes.size()));
}

static Value weightGradient(TensorLowering &op, Value input, Value gradient,
                            ArrayRef<int64_t> weightSizes,
                            const ConvolutionArguments &arguments) {
  size_t rank = arguments.spatialRank();
  ConvolutionWindow window;
  window.stride = arguments.dilation;
  window.inputDilation = ones(rank);
  window.weightDilation = arguments.stride;
  for (size_t i = 0; i < rank; ++i) {
    int64_t reach =
        (TensorTarget::sizesOf(gradient)[i + 2] - 1) * arguments.stride[i] + 1;
    int64_t needed = (weightSizes[i + 2] - 1) * arguments.dilation[i] + reach;
    int64_t low = arguments.padding[i];
    window.padLow.push_back(low);
    window.padHigh.push_back(needed - TensorTarget::sizesOf(input)[i + 2] -
                             low);
  }
  int64_t groups = arguments.groups;
  int64_t outputs = weightSizes[0] / groups, inputs = weightSizes[1];
  SmallVector<Value> parts;
  for (int64_t group = 0; group < groups; ++group) {
    Value source = channels(op, input, group * inputs, inputs);
    Value slope = channels(op, gradient, group * outputs, outputs);
    Value part = op.target.convolve(exchangeFirst(op, source),
                                    exchangeFirst(op, slope), window);
    parts.push_back(exchangeFirst(op, part));
  }
  return groups == 1 ? parts[0] : op.target.concatenate(parts, 0);
}

/// Checks the tensors of which the convolution is computed.
static LogicalResult check(TensorLowering &op, Value a, Value b) {
  if (!isa<FloatType>(op.dtype(a)))
    return op.fail("its dtype isn't a float");
  for (Value argument : {a, b})
    if (op.tensorType(argument).getNumElements() == 0)
      return op.fail("a tensor has no elements");
  return success();
}

/// The argument in its compute dtype: 16-bit floats are multiplied and summed
/// in float32, and rounded once.
static Value factor(TensorLowering &op, Value argument) {
  return op.operandAs(argument, computeDtypeOf(op.dtype(argument)));
}

static LogicalResult lowerConvolution(TensorLowering &op,
                                      AtenConvolutionOp args) {
  if (failed(check(op, args.getInput(), args.getWeight())))
    return failure();
  ConvolutionArguments arguments(op, args);
  Type dtype = op.dtype(args.getInput()), compute = computeDtypeOf(dtype);
  Value input = factor(op, args.getInput());
  Value weight = factor(op, args.getWeight());
  Value result =
      arguments.transposed
          ? inputGradient(op, input, weight, op.resultSizes(), arguments)
          : output(op, input, weight, arguments);
  if (!op.isNone(args.getBias())) {
    SmallVector<int64_t> sizes(arguments.spatialRank() + 1, 1);
    sizes[0] = op.sizes(args.getBias())[0];
    Value bias = op.target.reshape(factor(op, args.getBias()), sizes);
    result = op.add(result, bias, compute);
  }
  return op.replaceWith(op.convert(result, compute, dtype));
}

static LogicalResult lowerConvolutionBackward(TensorLowering &op,
                                              AtenConvolutionBackwardOp args) {
  if (failed(check(op, args.getGradOutput(), args.getInput())))
    return failure();
  ConvolutionArguments arguments(op, args);
  Type dtype = op.dtype(args.getGradOutput()), compute = computeDtypeOf(dtype);
  // The gradients of a transposed convolution are those of the plain
  // convolution with input and output exchanged.
  bool transposed = arguments.transposed;
  SmallVector<int64_t> mask = op.integers(args.getOutputMask());
  Value gradient = factor(op, args.getGradOutput());
  Value input = factor(op, args.getInput());
  Value weight = factor(op, args.getWeight());
  SmallVector<Value> results;
  for (unsigned i = 0; i < 3; ++i) {
    Value result;
    if (!op.isResultUsed(i)) {
      results.push_back(result);
      continue;
    }
    if (!mask[i])
      result = op.zeros(op.resultSizes(i), compute);
    else if (i == 0)
      result = transposed ? output(op, gradient, weight, arguments)
                          : inputGradient(op, gradient, weight,
                                          op.resultSizes(0), arguments);
    else if (i == 1)
      result = weightGradient(op, transposed ? gradient : input,
                              transposed ? input : gradient, op.resultSizes(1),
                              arguments);
    else {
      SmallVector<int64_t> dims{0};
      llvm::append_range(dims,
                         llvm::seq<int64_t>(2, op.rank(args.getGradOutput())));
      result = op.target.reduce(ReductionKind::Sum, gradient, dims);
    }
    results.push_back(op.convert(result, compute, dtype));
  }
  return op.replaceWith(results);
}

void torch_ltc::populateConvolutionTensorLowerings(TensorLoweringTable &table) {
  table.add(lowerConvolution);
  table.add(lowerConvolutionBackward);
}
