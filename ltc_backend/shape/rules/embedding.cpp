//===- embedding.cpp - Sizes of embeddings --------------------------------===//

#include "shape/rules/rules.h"

using namespace torch_ltc;
using at::ScalarType;

static void checkIndices(ScalarType dtype) {
  TORCH_CHECK(dtype == ScalarType::Long || dtype == ScalarType::Int,
              "Expected tensor for argument #1 'indices' to have one of the "
              "following scalar types: Long, Int; but got ",
              c10::toString(dtype), " instead");
}

bool shape_rules::embedding(const Arguments &arguments, ScalarType dtype,
                            ResultShapes &results) {
  TORCH_CHECK(arguments.rank(0) == 2, "'weight' must be 2-D");
  checkIndices(arguments.dtype(1));
  addResult(results, dtype, arguments.sizes(1))
      .sizes.push_back(arguments.sizes(0)[1]);
  return true;
}

bool shape_rules::embedding_renorm(const Arguments &arguments, ScalarType dtype,
                                   ResultShapes &results) {
  TORCH_CHECK(arguments.rank(0) == 2, "'self' must be 2-D");
  checkIndices(arguments.dtype(1));
  addResult(results, dtype, arguments.sizes(0));
  return true;
}

bool shape_rules::embedding_backward(const Arguments &arguments,
                                     ScalarType dtype, ResultShapes &results) {
  checkIndices(arguments.dtype(1));
  SizesRef gradient = arguments.sizes(0);
  TORCH_CHECK(!gradient.empty() &&
                  gradient.slice(0, gradient.size() - 1) == arguments.sizes(1),
              "a gradient of size ", gradient, " for indices of size ",
              arguments.sizes(1));
  TORCH_CHECK(c10::isFloatingType(dtype), "a gradient of dtype ",
              c10::toString(dtype));
  TORCH_CHECK(arguments.integer(2) >= 0, "negative number of embeddings");
  int64_t columns = gradient.back();
  addResult(results, dtype, {arguments.integer(2), columns});
  return true;
}

/// Adds the results of a bag of embeddings: the bags; the bag of each index,
/// which is empty if the kernel sums without it; the bags' sizes; for maxima,
/// the row of each element.
static bool addBags(const Arguments &arguments, ScalarType dtype,
                    ResultShapes &results, bool isForGradient) {
  SizesRef weight = arguments.sizes(0);
  int64_t mode = arguments.integer(4), paddingIndex = arguments.integer(8);
  TORCH_CHECK(weight.size() == 2 && c10::isFloatingType(dtype) &&
                  arguments.rank(1) == 1 && arguments.rank(2) == 1 &&
                  mode >= 0 && mode <= 2 && paddingIndex < weight[0],
              "an embedding bag of this kind");
  checkIndices(arguments.dtype(1));
  checkIndices(arguments.dtype(2));
  if (arguments.has(6))
    TORCH_CHECK(mode == 0 && arguments.dtype(6) == dtype &&
                    arguments.sizes(6) == arguments.sizes(1),
                "per_sample_weights of this kind");
  int64_t offsets = arguments.sizes(2)[0];
  int64_t bags = offsets - int64_t(arguments.flag(7));
  TORCH_CHECK(bags >= 0, "include_last_offset without an offset");
  bool isSum = mode == 0, isMaximum = mode == 2;
  bool hasBags = !isSum || dtype == ScalarType::Double || paddingIndex >= 0;
  // Without a gradient, sums have a size for each offset (torch 2.13).
  int64_t sizes = isSum && !isForGradient ? offsets : bags;
  ScalarType index = c10::promoteTypes(arguments.dtype(1), arguments.dtype(2));
  addResult(results, dtype, {bags, weight[1]});
  addResult(results, index, {hasBags ? arguments.sizes(1)[0] : 0});
  addResult(results, index, {sizes});
  addResult(results, index, isMaximum ? Sizes{bags, weight[1]} : Sizes{sizes});
  return true;
}

bool shape_rules::embedding_bag(const Arguments &arguments, ScalarType dtype,
                                ResultShapes &results) {
  return addBags(arguments, dtype, results, /*isForGradient=*/true);
}

bool shape_rules::embedding_bag_forward_only(const Arguments &arguments,
                                             ScalarType dtype,
                                             ResultShapes &results) {
  return addBags(arguments, dtype, results, /*isForGradient=*/false);
}
