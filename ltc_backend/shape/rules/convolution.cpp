//===- convolution.cpp - Sizes of convolutions ----------------------------===//

#include "shape/rules/rules.h"

#include <algorithm>

using namespace torch_ltc;
using at::ScalarType;

namespace {

/// aten::convolution's arguments after the bias, starting at position `first`.
struct ConvolutionParameters {
  Sizes stride, padding, dilation, outputPadding;
  bool transposed;
  int64_t groups;

  ConvolutionParameters(const Arguments &arguments, size_t first,
                        size_t numDims)
      : stride(arguments.integers(first, numDims)),
        padding(arguments.integers(first + 1, numDims)),
        dilation(arguments.integers(first + 2, numDims)),
        outputPadding(arguments.integers(first + 4, numDims)),
        transposed(arguments.flag(first + 3)),
        groups(arguments.integer(first + 5)) {
    check(stride, numDims, 1, "non-positive stride is not supported");
    check(padding, numDims, 0, "negative padding is not supported");
    check(dilation, numDims, 1, "dilation should be greater than zero");
    check(outputPadding, numDims, 0,
          "negative output_padding is not supported");
    TORCH_CHECK(groups > 0, "non-positive groups is not supported");
  }

private:
  static void check(const Sizes &values, size_t count, int64_t least,
                    const char *otherwise) {
    TORCH_CHECK(values.size() == count, "expected a list of ", count,
                " values, one for each spatial dimension, but got ",
                SizesRef(values));
    for (int64_t value : values)
      TORCH_CHECK(value >= least, otherwise);
  }
};

void checkChannels(SizesRef input, SizesRef weight,
                   const ConvolutionParameters &parameters) {
  int64_t groups = parameters.groups;
  TORCH_CHECK(weight[0] >= groups, "Given groups=", groups,
              ", expected weight to be at least ", groups,
              " at dimension 0, but got weight of size ", weight, " instead");
  TORCH_CHECK(weight[0] % groups == 0, "Given groups=", groups,
              ", expected weight to be divisible by ", groups,
              " at dimension 0, but got weight of size ", weight, " instead");
  int64_t channels = parameters.transposed ? weight[0] : weight[1] * groups;
  TORCH_CHECK(input[1] == channels, "Given groups=", groups,
              parameters.transposed ? ", transposed=1" : "",
              ", weight of size ", weight, ", expected input", input,
              " to have ", channels, " channels, but got ", input[1],
              " channels instead");
}

int64_t outputExtent(SizesRef input, SizesRef weight, size_t i,
                     const ConvolutionParameters &parameters) {
  int64_t reach = parameters.dilation[i] * (weight[i + 2] - 1) + 1;
  int64_t padding = 2 * parameters.padding[i];
  if (parameters.transposed) {
    TORCH_CHECK(
        parameters.outputPadding[i] <
            std::max(parameters.stride[i], parameters.dilation[i]),
        "output padding must be smaller than either stride or dilation");
    int64_t extent = (input[i + 2] - 1) * parameters.stride[i] - padding +
                     reach + parameters.outputPadding[i];
    TORCH_CHECK(extent >= 0, "Given input size per channel: ", input.slice(2),
                ". Calculated output size at dimension ", i + 2, ": ", extent,
                ". Output size is too small");
    return extent;
  }
  TORCH_CHECK(reach <= input[i + 2] + padding,
              "Calculated padded input size at dimension ", i + 2, ": ",
              input[i + 2] + padding, ". Kernel size: ", reach,
              ". Kernel size can't be greater than actual input size");
  return (input[i + 2] + padding - reach) / parameters.stride[i] + 1;
}

/// The sizes of the result. The input and the weight are the arguments at
/// `inputAt` and `inputAt + 1`; the parameters start at `first`.
Sizes outputSizes(const Arguments &arguments, size_t inputAt, size_t first) {
  SizesRef input = arguments.sizes(inputAt);
  SizesRef weight = arguments.sizes(inputAt + 1);
  TORCH_CHECK(weight.size() >= 3, "weight should have at least three "
                                  "dimensions");
  TORCH_CHECK(input.size() == weight.size(), "Expected ", weight.size(),
              "-dimensional input for ", weight.size(), "-dimensional weight ",
              weight, ", but got ", input.size(), "-dimensional input of size ",
              input, " instead");
  // PyTorch's kernels treat a weight without elements as a special case, so
  // such a call runs eagerly.
  TORCH_CHECK(numElements(weight) != 0, "a weight without elements: ", weight);
  size_t numDims = weight.size() - 2;
  ConvolutionParameters parameters(arguments, first, numDims);
  checkChannels(input, weight, parameters);
  Sizes sizes{input[0], parameters.transposed ? weight[1] * parameters.groups
                                              : weight[0]};
  for (size_t i = 0; i < numDims; ++i)
    sizes.push_back(outputExtent(input, weight, i, parameters));
  return sizes;
}

} // namespace

bool shape_rules::convolution(const Arguments &arguments, ScalarType dtype,
                              ResultShapes &results) {
  Sizes sizes = outputSizes(arguments, 0, 3);
  checkSizes(arguments, 2, {sizes[1]});
  checkSameDType(arguments, {0, 1, 2});
  addResult(results, dtype, sizes);
  return true;
}

bool shape_rules::convolution_backward(const Arguments &arguments,
                                       ScalarType dtype,
                                       ResultShapes &results) {
  checkFloating(arguments, {0, 1, 2});
  checkSizes(arguments, 0, outputSizes(arguments, 1, 4));
  Sizes channels{arguments.sizes(0)[1]};
  SizesRef sizes[] = {arguments.sizes(1), arguments.sizes(2), channels};
  c10::ArrayRef<c10::IValue> mask = arguments[arguments.size() - 1].toListRef();
  for (size_t i = 0; i < 3; ++i) {
    if (mask[i].toBool())
      addResult(results, dtype, sizes[i]);
    else
      addUndefined(results);
  }
  return true;
}
