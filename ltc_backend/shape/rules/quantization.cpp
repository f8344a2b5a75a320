//===- quantization.cpp - Sizes of fake quantization ----------------------===//

#include "shape/rules/rules.h"

using namespace torch_ltc;
using at::ScalarType;

/// Adds the quantized elements, and the mask of those that are in range.
/// `limits`: the index of the argument `quant_min`, before `quant_max`.
static bool addQuantized(const Arguments &arguments, ScalarType dtype,
                         ResultShapes &results, size_t limits) {
  TORCH_CHECK(c10::isFloatingType(dtype), "a tensor of dtype ",
              c10::toString(dtype));
  TORCH_CHECK(arguments.integer(limits) <= arguments.integer(limits + 1),
              "`quant_min` should be less than or equal to `quant_max`.");
  addResult(results, dtype, arguments.sizes(0));
  addResult(results, ScalarType::Bool, arguments.sizes(0));
  return true;
}

static void checkZeroPoint(ScalarType dtype) {
  TORCH_CHECK(dtype == ScalarType::Int || dtype == ScalarType::Float ||
                  dtype == ScalarType::Half,
              "Zero-point must be Int32, Float or Half, found ",
              c10::toString(dtype));
}

bool shape_rules::fake_quantize(const Arguments &arguments, ScalarType dtype,
                                ResultShapes &results) {
  int64_t zeroPoint = arguments.integer(2);
  TORCH_CHECK(zeroPoint >= arguments.integer(3) &&
                  zeroPoint <= arguments.integer(4),
              "`zero_point` must be between `quant_min` and `quant_max`.");
  return addQuantized(arguments, dtype, results, 3);
}

bool shape_rules::fake_quantize_tensors(const Arguments &arguments,
                                        ScalarType dtype,
                                        ResultShapes &results) {
  for (size_t i = 1; i < 4; ++i)
    TORCH_CHECK(numElements(arguments.sizes(i)) == 1, "a Tensor with ",
                numElements(arguments.sizes(i)),
                " elements cannot be converted to Scalar");
  return addQuantized(arguments, dtype, results, 4);
}

bool shape_rules::fake_quantize_channels(const Arguments &arguments,
                                         ScalarType dtype,
                                         ResultShapes &results) {
  const int64_t axis = arguments.integer(3);
  SizesRef self = arguments.sizes(0), scale = arguments.sizes(1);
  TORCH_CHECK(axis >= 0 && axis < int64_t(self.size()),
              "`axis` must be between 0 and number of dimensions of input");
  TORCH_CHECK(scale.size() == 1 && scale == arguments.sizes(2) &&
                  scale[0] == self[axis],
              "dimensions of scale and zero-point are not consistent with "
              "input tensor");
  // PyTorch's kernel (2.13) only accepts bfloat16 scales for some operands.
  TORCH_CHECK(arguments.dtype(1) == ScalarType::Float, "a scale of dtype ",
              c10::toString(arguments.dtype(1)));
  checkZeroPoint(arguments.dtype(2));
  return addQuantized(arguments, dtype, results, 4);
}

/// The results of `fake_quantize`, and the new smallest and largest elements,
/// scales and zero points. PyTorch's kernel resizes empty states.
bool shape_rules::fused_fake_quantize(const Arguments &arguments,
                                      ScalarType dtype, ResultShapes &results) {
  TORCH_CHECK(dtype == ScalarType::Float, "a tensor of dtype ",
              c10::toString(dtype));
  const bool isPerChannel = arguments.flag(11);
  SizesRef self = arguments.sizes(0);
  const int64_t axis = arguments.integer(10);
  TORCH_CHECK(!isPerChannel || (axis >= 0 && axis < int64_t(self.size())),
              "a channel of dim ", axis);
  const int64_t channels = isPerChannel ? self[axis] : 1;
  for (size_t i = 3; i < 7; ++i)
    TORCH_CHECK(numElements(arguments.sizes(i)) == channels &&
                    arguments.dtype(i) ==
                        (i == 6 ? ScalarType::Int : ScalarType::Float),
                "states of other sizes or dtypes");
  TORCH_CHECK(numElements(self) > 0, "no elements to observe");
  addQuantized(arguments, dtype, results, 8);
  for (size_t i = 3; i < 7; ++i)
    addResult(results, arguments.dtype(i), arguments.sizes(i));
  return true;
}
