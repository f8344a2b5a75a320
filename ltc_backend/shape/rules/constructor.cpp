//===- constructor.cpp - Sizes of tensors created from numbers ------------===//

#include "shape/rules/rules.h"

#include <ATen/native/TensorFactories.h>

#include <cmath>

using namespace torch_ltc;
using at::ScalarType;

// The first list of ints gives the result's sizes.
bool shape_rules::sizes(const Arguments &arguments, ScalarType dtype,
                        ResultShapes &results) {
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (!arguments[i].isList())
      continue;
    Sizes size = arguments.integers(i);
    checkNonNegative(size);
    addResult(results, dtype, size);
    return true;
  }
  return false;
}

bool shape_rules::scalar(const Arguments &, ScalarType dtype,
                         ResultShapes &results) {
  addResult(results, dtype, {});
  return true;
}

// The result is a vector whose length is the argument `steps` (linspace) or, if
// there is none, the first argument (randperm).
bool shape_rules::length(const Arguments &arguments, ScalarType dtype,
                         ResultShapes &results) {
  std::optional<size_t> steps = arguments.find("steps");
  int64_t count = arguments.integer(steps.value_or(0));
  TORCH_CHECK(count >= 0,
              steps ? "number of steps must be non-negative"
                    : "n must be non-negative, got",
              steps ? std::string() : std::to_string(count));
  addResult(results, dtype, {count});
  return true;
}

bool shape_rules::eye(const Arguments &arguments, ScalarType dtype,
                      ResultShapes &results) {
  int64_t n = arguments.integer(0);
  int64_t m = arguments.name(1) == "m" ? arguments.integer(1) : n;
  TORCH_CHECK(n >= 0, "n must be greater or equal to 0, got ", n);
  TORCH_CHECK(m >= 0, "m must be greater or equal to 0, got ", m);
  addResult(results, dtype, {n, m});
  return true;
}

/// The number of elements on and below the diagonal `offset` of a matrix.
static int64_t lowerTriangle(const Arguments &arguments, int64_t offset) {
  int64_t rows = arguments.integer(0), columns = arguments.integer(1);
  TORCH_CHECK(rows >= 0, "row must be non-negative, got", rows);
  TORCH_CHECK(columns >= 0, "col must be non-negative, got", columns);
  return at::native::get_tril_size(rows, columns, offset);
}

bool shape_rules::lower_triangle_indices(const Arguments &arguments,
                                         ScalarType dtype,
                                         ResultShapes &results) {
  addResult(results, dtype,
            {2, lowerTriangle(arguments, arguments.integer(2))});
  return true;
}

bool shape_rules::upper_triangle_indices(const Arguments &arguments,
                                         ScalarType dtype,
                                         ResultShapes &results) {
  int64_t below = lowerTriangle(arguments, arguments.integer(2) - 1);
  addResult(results, dtype,
            {2, arguments.integer(0) * arguments.integer(1) - below});
  return true;
}

namespace {

/// ceil((end - start) / step), computed as torch does: exactly for int64, in
/// double for all other dtypes.
int64_t rangeLength(const at::Scalar &start, const at::Scalar &end,
                    const at::Scalar &step, ScalarType dtype) {
  if (dtype == ScalarType::Long) {
    int64_t first = start.to<int64_t>(), last = end.to<int64_t>();
    int64_t stride = step.to<int64_t>();
    TORCH_CHECK(stride != 0, "step must be nonzero");
    int64_t sign = stride > 0 ? 1 : -1;
    return (last - first + stride - sign) / stride;
  }
  double length =
      std::ceil((end.to<double>() - start.to<double>()) / step.to<double>());
  TORCH_CHECK(length >= 0 && length <= 0x1p62, "invalid size, possible "
                                               "overflow?");
  return int64_t(length);
}

} // namespace

bool shape_rules::arange(const Arguments &arguments, ScalarType dtype,
                         ResultShapes &results) {
  bool hasStart = arguments.name(0) == "start";
  at::Scalar start = hasStart ? arguments[0].toScalar() : at::Scalar(0);
  at::Scalar end = arguments[hasStart ? 1 : 0].toScalar();
  at::Scalar step =
      arguments.name(2) == "step" ? arguments[2].toScalar() : at::Scalar(1);
  double first = start.to<double>(), last = end.to<double>();
  double stride = step.to<double>();
  TORCH_CHECK(stride != 0, "step must be nonzero");
  TORCH_CHECK(std::isfinite(first) && std::isfinite(last),
              "unsupported range: ", first, " -> ", last);
  TORCH_CHECK((stride > 0 && last >= first) || (stride < 0 && last <= first),
              "upper bound and lower bound inconsistent with step sign");
  addResult(results, dtype, {rangeLength(start, end, step, dtype)});
  return true;
}

bool shape_rules::fill(const Arguments &arguments, ScalarType dtype,
                       ResultShapes &results) {
  TORCH_CHECK(arguments.rank(1) == 0,
              "fill_ only supports 0-dimension value tensor but got tensor "
              "with ",
              arguments.rank(1), " dimensions.");
  addResult(results, dtype, arguments.sizes(0));
  return true;
}
