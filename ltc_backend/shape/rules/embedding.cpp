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
