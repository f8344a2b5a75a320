//===- normalization.cpp - Sizes of normalized tensors and statistics -----===//

#include "shape/rules/rules.h"

using namespace torch_ltc;
using at::ScalarType;

namespace {

/// The dtype of the statistics: float32 for a 16-bit input if one of the
/// `parameters` is float32, otherwise `dtype`.
ScalarType statisticsDType(const Arguments &arguments, ScalarType dtype,
                           std::initializer_list<size_t> parameters) {
  if (dtype == ScalarType::Half || dtype == ScalarType::BFloat16)
    for (size_t i : parameters)
      if (arguments.has(i) && arguments.dtype(i) == ScalarType::Float)
        return ScalarType::Float;
  return dtype;
}

/// Checks layer_norm's shapes; returns the number of dims that aren't
/// normalized.
size_t checkNormalizedShape(const Arguments &arguments, size_t input,
                            SizesRef normalized,
                            std::initializer_list<size_t> parameters) {
  SizesRef sizes = arguments.sizes(input);
  TORCH_CHECK(!normalized.empty(),
              "Expected normalized_shape to be at least 1-dimensional, i.e., "
              "containing at least one element, but got normalized_shape = ",
              normalized);
  for (size_t i : parameters)
    TORCH_CHECK(!arguments.has(i) || arguments.sizes(i) == normalized,
                "Expected ", arguments.name(i),
                " to be of same shape as normalized_shape, but got ",
                arguments.name(i), " of shape ",
                arguments.has(i) ? arguments.sizes(i) : SizesRef(),
                " and normalized_shape = ", normalized);
  TORCH_CHECK(sizes.size() >= normalized.size() &&
                  sizes.slice(sizes.size() - normalized.size()) == normalized,
              "Given normalized_shape=", normalized,
              ", expected input with shape [*, ", normalized,
              "], but got input of size", sizes);
  return sizes.size() - normalized.size();
}

/// The sizes of layer_norm's statistics: 1 in normalized dims.
Sizes statisticsSizes(SizesRef input, size_t numKept) {
  Sizes result(input);
  for (size_t i = numKept; i < result.size(); ++i)
    result[i] = 1;
  return result;
}

/// Throws unless the input and the factors have the same floating-point dtype,
/// or the factors are float32 and the input has a 16-bit dtype.
void checkDTypes(const Arguments &arguments, size_t input,
                 std::initializer_list<size_t> factors) {
  checkFloating(arguments, {input});
  checkFloating(arguments, factors);
  ScalarType dtype = arguments.dtype(input);
  bool isSmall = dtype == ScalarType::Half || dtype == ScalarType::BFloat16;
  for (size_t i : factors)
    TORCH_CHECK(!arguments.has(i) || arguments.dtype(i) == dtype ||
                    (isSmall && arguments.dtype(i) == ScalarType::Float),
                "expected ", arguments.name(i), " of dtype ",
                c10::toString(dtype));
}

int64_t checkBatchNorm(const Arguments &arguments,
                       std::initializer_list<size_t> parameters, size_t input) {
  SizesRef sizes = arguments.sizes(input);
  TORCH_CHECK(sizes.size() >= 2,
              "Expected input to have at least 2 "
              "dimensions, but got input of size ",
              sizes);
  for (size_t i : parameters)
    TORCH_CHECK(!arguments.has(i) || (arguments.rank(i) == 1 &&
                                      arguments.sizes(i)[0] == sizes[1]),
                arguments.name(i), " should contain ", sizes[1],
                " elements not ",
                arguments.has(i) ? numElements(arguments.sizes(i)) : 0);
  TORCH_CHECK_NOT_IMPLEMENTED(c10::isFloatingType(arguments.dtype(input)),
                              "\"batch_norm\" not "
                              "implemented for '",
                              c10::toString(arguments.dtype(input)), "'");
  checkDTypes(arguments, input, parameters);
  return sizes[1];
}

/// Adds the gradient that element `i` of the mask (the last argument) requests.
/// The gradient is undefined if this element is false or the operand doesn't
/// exist.
void addMasked(const Arguments &arguments, size_t i, ScalarType dtype,
               SizesRef sizes, ResultShapes &results, bool exists = true) {
  c10::ArrayRef<c10::IValue> mask = arguments[arguments.size() - 1].toListRef();
  if (exists && mask[i].toBool())
    addResult(results, dtype, sizes);
  else
    addUndefined(results);
}

} // namespace

bool shape_rules::layer_norm(const Arguments &arguments, ScalarType dtype,
                             ResultShapes &results) {
  Sizes normalized = arguments.integers(1);
  size_t numKept = checkNormalizedShape(arguments, 0, normalized, {2, 3});
  checkDTypes(arguments, 0, {2, 3});
  Sizes statistics = statisticsSizes(arguments.sizes(0), numKept);
  ScalarType statisticsType = statisticsDType(arguments, dtype, {2, 3});
  addResult(results, dtype, arguments.sizes(0));
  addResult(results, statisticsType, statistics);
  addResult(results, statisticsType, statistics);
  return true;
}

bool shape_rules::layer_norm_backward(const Arguments &arguments,
                                      ScalarType dtype, ResultShapes &results) {
  Sizes normalized = arguments.integers(2);
  size_t numKept = checkNormalizedShape(arguments, 1, normalized, {5, 6});
  checkDTypes(arguments, 1, {5, 6});
  checkSameDType(arguments, {0, 1});
  checkSizes(arguments, 0, arguments.sizes(1));
  for (size_t statistic : {3, 4})
    checkSizes(arguments, statistic,
               statisticsSizes(arguments.sizes(1), numKept));
  addMasked(arguments, 0, dtype, arguments.sizes(1), results);
  ScalarType weightType = arguments.has(5) ? arguments.dtype(5) : dtype;
  addMasked(arguments, 1, weightType, normalized, results, arguments.has(5));
  addMasked(arguments, 2, weightType, normalized, results, arguments.has(6));
  return true;
}

bool shape_rules::rms_norm(const Arguments &arguments, ScalarType dtype,
                           ResultShapes &results) {
  Sizes normalized = arguments.integers(1);
  size_t numKept = checkNormalizedShape(arguments, 0, normalized, {2});
  addResult(results, dtype, arguments.sizes(0));
  bool isHalf = dtype == ScalarType::Half || dtype == ScalarType::BFloat16;
  addResult(results, isHalf ? ScalarType::Float : dtype,
            statisticsSizes(arguments.sizes(0), numKept));
  return true;
}

bool shape_rules::rms_norm_backward(const Arguments &arguments,
                                    ScalarType dtype, ResultShapes &results) {
  Sizes normalized = arguments.integers(2);
  checkNormalizedShape(arguments, 1, normalized, {4});
  addMasked(arguments, 0, dtype, arguments.sizes(1), results);
  addMasked(arguments, 1, arguments.has(4) ? arguments.dtype(4) : dtype,
            normalized, results, arguments.has(4));
  return true;
}

// The rule of native_batch_norm and _native_batch_norm_legit.
bool shape_rules::batch_norm(const Arguments &arguments, ScalarType dtype,
                             ResultShapes &results) {
  // The tensors are input, weight, bias and, in one overload, running
  // statistics.
  bool hasRunning = !arguments[3].isBool();
  int64_t channels = hasRunning ? checkBatchNorm(arguments, {1, 2, 3, 4}, 0)
                                : checkBatchNorm(arguments, {1, 2}, 0);
  bool training = arguments.flag(hasRunning ? 5 : 3);
  TORCH_CHECK(training || (hasRunning && arguments.has(3) && arguments.has(4)),
              "running_mean must be defined in evaluation mode");
  Sizes saved{training ? channels : 0};
  ScalarType savedType = hasRunning
                             ? statisticsDType(arguments, dtype, {1, 2, 3, 4})
                             : statisticsDType(arguments, dtype, {1, 2});
  addResult(results, dtype, arguments.sizes(0));
  addResult(results, savedType, saved);
  addResult(results, savedType, saved);
  return true;
}

bool shape_rules::batch_norm_inference(const Arguments &arguments,
                                       ScalarType dtype,
                                       ResultShapes &results) {
  checkBatchNorm(arguments, {1, 2, 3, 4}, 0);
  ScalarType savedType = statisticsDType(arguments, dtype, {1, 2, 3, 4});
  addResult(results, dtype, arguments.sizes(0));
  addResult(results, savedType, {0});
  addResult(results, savedType, {0});
  return true;
}

bool shape_rules::batch_norm_functional(const Arguments &arguments,
                                        ScalarType dtype,
                                        ResultShapes &results) {
  batch_norm(arguments, dtype, results);
  addResult(results, arguments.dtype(3), arguments.sizes(3));
  addResult(results, arguments.dtype(4), arguments.sizes(4));
  return true;
}

bool shape_rules::batch_norm_backward(const Arguments &arguments,
                                      ScalarType dtype, ResultShapes &results) {
  Sizes channels{checkBatchNorm(arguments, {2, 3, 4}, 1)};
  checkSizes(arguments, 0, arguments.sizes(1));
  checkSameDType(arguments, {0, 1});
  if (arguments.flag(7))
    for (size_t saved : {5, 6})
      checkSizes(arguments, saved, channels);
  ScalarType weightType = arguments.has(2) ? arguments.dtype(2) : dtype;
  addMasked(arguments, 0, arguments.dtype(1), arguments.sizes(1), results);
  addMasked(arguments, 1, weightType, channels, results);
  addMasked(arguments, 2, weightType, channels, results);
  return true;
}

namespace {

struct GroupNormSizes {
  int64_t n, c, hw, groups;

  GroupNormSizes(const Arguments &arguments, size_t input, size_t first)
      : n(arguments.integer(first)), c(arguments.integer(first + 1)),
        hw(arguments.integer(first + 2)), groups(arguments.integer(first + 3)) {
    TORCH_CHECK(groups > 0, "Expected num groups to be greater than 0, got ",
                groups);
    TORCH_CHECK(c % groups == 0,
                "Expected number of channels in input to be divisible by "
                "num_groups, but got input of shape ",
                arguments.sizes(input), " and num_groups=", groups);
    TORCH_CHECK(n * c * hw == numElements(arguments.sizes(input)),
                "Expected a tensor of ", n, "x", c, "x", hw,
                " elements, but got one of size ", arguments.sizes(input));
  }
};

} // namespace

bool shape_rules::group_norm(const Arguments &arguments, ScalarType dtype,
                             ResultShapes &results) {
  GroupNormSizes sizes(arguments, 0, 3);
  checkDTypes(arguments, 0, {1, 2});
  for (size_t i : {1, 2})
    TORCH_CHECK(!arguments.has(i) || (arguments.rank(i) == 1 &&
                                      arguments.sizes(i)[0] == sizes.c),
                "Expected ", arguments.name(i),
                " to be a vector of size equal to the number of channels in "
                "input, but got ",
                arguments.name(i), " of shape ",
                arguments.has(i) ? arguments.sizes(i) : SizesRef(),
                " and input of shape ", arguments.sizes(0));
  ScalarType statisticsType = statisticsDType(arguments, dtype, {1, 2});
  addResult(results, dtype, arguments.sizes(0));
  addResult(results, statisticsType, {sizes.n, sizes.groups});
  addResult(results, statisticsType, {sizes.n, sizes.groups});
  return true;
}

bool shape_rules::group_norm_backward(const Arguments &arguments,
                                      ScalarType dtype, ResultShapes &results) {
  GroupNormSizes sizes(arguments, 1, 5);
  checkDTypes(arguments, 1, {4});
  checkSameDType(arguments, {0, 1});
  checkSizes(arguments, 0, arguments.sizes(1));
  for (size_t statistic : {2, 3})
    checkSizes(arguments, statistic, {sizes.n, sizes.groups});
  checkSizes(arguments, 4, {sizes.c});
  ScalarType weightType = arguments.has(4) ? arguments.dtype(4) : dtype;
  addMasked(arguments, 0, arguments.dtype(1), arguments.sizes(1), results);
  addMasked(arguments, 1, weightType, {sizes.c}, results);
  addMasked(arguments, 2, weightType, {sizes.c}, results);
  return true;
}
