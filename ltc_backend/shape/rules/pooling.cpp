//===- pooling.cpp - Sizes of pooled and upsampled images -----------------===//

#include "shape/rules/rules.h"

#include <ATen/native/Pool.h>

#include <array>

using namespace torch_ltc;
using at::ScalarType;

namespace {

struct Window {
  Sizes kernel, stride, padding, dilation;

  /// `first` and `dilation` are positions of arguments; `dilation` is 0 if the
  /// op has no such argument.
  Window(const Arguments &arguments, size_t first, size_t dilation)
      : kernel(arguments.integers(first, 2)),
        stride(arguments.integers(first + 1, 2)),
        padding(arguments.integers(first + 2, 2)), dilation({1, 1}) {
    if (stride.empty())
      stride = kernel;
    if (dilation)
      this->dilation = arguments.integers(dilation, 2);
    TORCH_CHECK(kernel.size() == 2, arguments.opName(),
                ": kernel_size must either be a single int, or a tuple of two "
                "ints");
    TORCH_CHECK(stride.size() == 2, arguments.opName(),
                ": stride must either be omitted, a single int, or a tuple of "
                "two ints");
    TORCH_CHECK(padding.size() == 2, arguments.opName(),
                ": padding must either be a single int, or a tuple of two "
                "ints");
    TORCH_CHECK(this->dilation.size() == 2, arguments.opName(),
                ": dilation must be either a single int, or a tuple of two "
                "ints");
    checkPositive(kernel, "kernel size should be greater than zero, but got ");
    checkPositive(stride, "stride should be greater than zero, but got ");
    checkPositive(this->dilation,
                  "dilation should be greater than zero, but got ");
  }

  /// The sizes [N,] C, H, W of the pooled image.
  Sizes pooledSizes(SizesRef input, bool ceilMode) const {
    checkImage(input);
    Sizes result(input);
    for (size_t i = 0; i < 2; ++i) {
      TORCH_CHECK(kernel[i] / 2 >= padding[i],
                  "pad should be smaller than or equal to half of kernel size, "
                  "but got padW = ",
                  padding[1], ", padH = ", padding[0], ", kW = ", kernel[1],
                  ", kH = ", kernel[0]);
      int64_t &extent = result[result.size() - 2 + i];
      extent = at::native::pooling_output_shape<int64_t>(
          extent, kernel[i], padding[i], stride[i], dilation[i], ceilMode);
      TORCH_CHECK(extent >= 1, "Given input size: ", input,
                  ". Calculated output size at dimension ",
                  result.size() - 2 + i, ": ", extent,
                  ". Output size is too small");
    }
    return result;
  }

private:
  static void checkPositive(const Sizes &sizes, const char *otherwise) {
    TORCH_CHECK(sizes[0] > 0 && sizes[1] > 0, otherwise, SizesRef(sizes));
  }

  static void checkImage(SizesRef input) {
    bool valid = input.size() == 3 || input.size() == 4;
    for (size_t i = input.size() == 4 ? 1 : 0; i < input.size(); ++i)
      valid &= input[i] != 0;
    TORCH_CHECK(valid,
                "Expected 3D or 4D (batch mode) tensor with optional 0 dim "
                "batch size for input, but got:",
                input);
  }
};

void checkGradient(SizesRef gradient, SizesRef expected) {
  TORCH_CHECK(gradient == expected, "Expected a gradient of the pooled size ",
              expected, ", but got a tensor of size ", gradient);
}

/// The sizes of the input, with the last two replaced by the argument
/// `output_size`. Throws if one of the last `numNonEmpty` sizes, other than
/// that of dimension 0, is 0.
Sizes resized(const Arguments &arguments, size_t numNonEmpty) {
  SizesRef self = arguments.sizes(0);
  Sizes output = arguments.integers(1);
  TORCH_CHECK(output.size() == 2, arguments.opName(),
              ": output_size must be 2");
  TORCH_CHECK(self.size() == 3 || self.size() == 4, arguments.opName(),
              "(): Expected 3D or 4D tensor, but got ", self);
  size_t first = std::max<size_t>(self.size() - numNonEmpty, 1);
  for (size_t i = first; i < self.size(); ++i)
    TORCH_CHECK(self[i] != 0, arguments.opName(),
                "(): Expected input to have non-zero size for non-batch "
                "dimensions, but input has sizes ",
                self, " with dimension ", i, " being empty");
  checkNonNegative(output);
  Sizes result(self);
  result[self.size() - 2] = output[0];
  result[self.size() - 1] = output[1];
  return result;
}

} // namespace

bool shape_rules::max_pool2d(const Arguments &arguments, ScalarType dtype,
                             ResultShapes &results) {
  Sizes sizes = Window(arguments, 1, /*dilation=*/4)
                    .pooledSizes(arguments.sizes(0), arguments.flag(5));
  addResult(results, dtype, sizes);
  addResult(results, ScalarType::Long, sizes);
  return true;
}

bool shape_rules::max_pool2d_backward(const Arguments &arguments,
                                      ScalarType dtype, ResultShapes &results) {
  checkGradient(arguments.sizes(0),
                Window(arguments, 2, /*dilation=*/5)
                    .pooledSizes(arguments.sizes(1), arguments.flag(6)));
  addResult(results, dtype, arguments.sizes(1));
  return true;
}

bool shape_rules::avg_pool2d(const Arguments &arguments, ScalarType dtype,
                             ResultShapes &results) {
  addResult(results, dtype,
            Window(arguments, 1, /*dilation=*/0)
                .pooledSizes(arguments.sizes(0), arguments.flag(4)));
  TORCH_CHECK(!arguments.has(6) || arguments.integer(6) != 0,
              "divisor must be not zero");
  return true;
}

bool shape_rules::avg_pool2d_backward(const Arguments &arguments,
                                      ScalarType dtype, ResultShapes &results) {
  checkGradient(arguments.sizes(0),
                Window(arguments, 2, /*dilation=*/0)
                    .pooledSizes(arguments.sizes(1), arguments.flag(5)));
  TORCH_CHECK(!arguments.has(7) || arguments.integer(7) != 0,
              "divisor must be not zero");
  addResult(results, dtype, arguments.sizes(1));
  return true;
}

bool shape_rules::adaptive_pool2d(const Arguments &arguments, ScalarType dtype,
                                  ResultShapes &results) {
  addResult(results, dtype, resized(arguments, 2));
  return true;
}

bool shape_rules::adaptive_max_pool2d(const Arguments &arguments,
                                      ScalarType dtype, ResultShapes &results) {
  Sizes sizes = resized(arguments, 3);
  addResult(results, dtype, sizes);
  addResult(results, ScalarType::Long, sizes);
  return true;
}

bool shape_rules::adaptive_pool2d_backward(const Arguments &arguments,
                                           ScalarType dtype,
                                           ResultShapes &results) {
  SizesRef gradient = arguments.sizes(0), self = arguments.sizes(1);
  TORCH_CHECK(arguments.dtype(0) == arguments.dtype(1), "expected dtype ",
              c10::toString(arguments.dtype(1)),
              " for `grad_output` but got dtype ", c10::toString(dtype));
  TORCH_CHECK(
      (self.size() == 3 || self.size() == 4) && gradient.size() == self.size(),
      arguments.opName(), "(): Expected 3D or 4D tensor, but got ", self);
  checkFloating(arguments, {0});
  TORCH_CHECK(gradient.slice(0, gradient.size() - 2) ==
                  self.slice(0, self.size() - 2),
              "a gradient of size ", gradient, " for input of size ", self);
  if (arguments.size() > 2) { // the positions of the maxima
    checkSizes(arguments, 2, gradient);
    TORCH_CHECK(arguments.dtype(2) == ScalarType::Long, "indices of dtype ",
                c10::toString(arguments.dtype(2)));
  }
  addResult(results, dtype, self);
  return true;
}

bool shape_rules::fractional_max_pool3d_backward(const Arguments &arguments,
                                                 ScalarType dtype,
                                                 ResultShapes &results) {
  SizesRef self = arguments.sizes(1);
  TORCH_CHECK(arguments.dtype(0) == arguments.dtype(1) &&
                  arguments.dtype(4) == ScalarType::Long,
              arguments.opName(), "(): expected `grad_output` of dtype ",
              c10::toString(arguments.dtype(1)), " and `indices` of Long");
  TORCH_CHECK(self.size() == 4 || self.size() == 5, arguments.opName(),
              "(): Expected 4D or 5D tensor, but got ", self);
  Sizes output = arguments.integers(3);
  TORCH_CHECK(output.size() == 3, arguments.opName(),
              "(): output_size must be 3");
  Sizes pooled(self);
  std::copy(output.begin(), output.end(), pooled.end() - 3);
  for (size_t i : {0, 4})
    TORCH_CHECK(arguments.sizes(i) == SizesRef(pooled), arguments.opName(),
                "(): expected gradient and indices of size ", SizesRef(pooled),
                ", but got ", arguments.sizes(i));
  addResult(results, dtype, self);
  return true;
}

bool shape_rules::upsample2d(const Arguments &arguments, ScalarType dtype,
                             ResultShapes &results) {
  Sizes input(arguments.sizes(0)), output = arguments.integers(1);
  TORCH_CHECK(output.size() == 2,
              "It is expected output_size equals to 2, but got size ",
              output.size());
  TORCH_CHECK(input.size() == 4,
              "It is expected input_size equals to 4, but got size ",
              input.size());
  TORCH_CHECK(input[2] > 0 && input[3] > 0 && output[0] > 0 && output[1] > 0,
              "Input and output sizes should be greater than 0, but got input "
              "(H: ",
              input[2], ", W: ", input[3], ") output (H: ", output[0],
              ", W: ", output[1], ")");
  TORCH_CHECK(input[1] != 0,
              "Non-empty 4D data tensor expected but got a tensor with sizes ",
              SizesRef(input));
  input[2] = output[0];
  input[3] = output[1];
  addResult(results, dtype, input);
  return true;
}

bool shape_rules::upsample2d_backward(const Arguments &arguments,
                                      ScalarType dtype, ResultShapes &results) {
  Sizes output = arguments.integers(1), input = arguments.integers(2);
  TORCH_CHECK(input.size() == 4,
              "It is expected input_size equals to 4, but got size ",
              input.size());
  TORCH_CHECK(output.size() == 2,
              "It is expected output_size equals to 2, but got size ",
              output.size());
  std::array<int64_t, 4> expected = {input[0], input[1], output[0], output[1]};
  TORCH_CHECK(arguments.sizes(0) == SizesRef(expected),
              "Expected grad_output to have the same shape as output; output "
              "has size ",
              SizesRef(expected), " but got grad_output of size ",
              arguments.sizes(0));
  addResult(results, dtype, input);
  return true;
}
