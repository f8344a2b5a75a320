//===- views.cpp - Sizes of views, their gradients and scatters -----------===//

#include "shape/rules/rules.h"

#include <ATen/ExpandUtils.h>
#include <ATen/InferSize.h>

#include <algorithm>
#include <bitset>

using namespace torch_ltc;
using at::ScalarType;

bool shape_rules::view(const Arguments &arguments, ScalarType dtype,
                       ResultShapes &results) {
  Sizes size = arguments.integers(1);
  int64_t elements = numElements(arguments.sizes(0));
  // Handles the common case first; infer_size_dv replaces a size of -1, or
  // throws.
  if (std::all_of(size.begin(), size.end(), [](int64_t s) { return s >= 0; }) &&
      numElements(size) == elements)
    addResult(results, dtype, size);
  else
    addResult(results, dtype, at::infer_size_dv(size, elements));
  return true;
}

bool shape_rules::expand(const Arguments &arguments, ScalarType dtype,
                         ResultShapes &results) {
  SizesRef self = arguments.sizes(0);
  Sizes size = arguments.integers(1);
  TORCH_CHECK(size.size() >= self.size(), "expand(torch.", c10::toString(dtype),
              "Tensor{", self, "}, size=", SizesRef(size),
              "): the number of sizes provided (", size.size(),
              ") must be greater or equal to the number of dimensions in the "
              "tensor (",
              self.size(), ")");
  at::DimVector expanded =
      at::inferExpandGeometry_dimvector(self, self, size).sizes;
  for (size_t i = 0; i < expanded.size(); ++i)
    TORCH_CHECK(expanded[i] >= 0, "The expanded size of the tensor (",
                expanded[i],
                ") isn't allowed in a leading, non-existing dimension ", i);
  addResult(results, dtype, expanded);
  return true;
}

bool shape_rules::permute(const Arguments &arguments, ScalarType dtype,
                          ResultShapes &results) {
  SizesRef self = arguments.sizes(0);
  Sizes dims = arguments.integers(1);
  TORCH_CHECK(dims.size() == self.size(),
              "permute(sparse_coo): number of dimensions in the tensor input "
              "does not match the length of the desired ordering of dimensions "
              "i.e. input.dim() = ",
              self.size(), " is not equal to len(dims) = ", dims.size());
  std::bitset<64> seen;
  ResultShape &result = results.emplace_back();
  result.dtype = dtype;
  for (int64_t dim : dims) {
    int64_t wrapped = dimFromFront(dim, self.size());
    TORCH_CHECK(!seen[wrapped], "permute(): duplicate dims are not allowed.");
    seen.set(wrapped);
    result.sizes.push_back(self[wrapped]);
  }
  return true;
}

bool shape_rules::transpose(const Arguments &arguments, ScalarType dtype,
                            ResultShapes &results) {
  int64_t rank = arguments.rank(0);
  int64_t dim0 = dimFromFront(arguments.integer(1), rank);
  int64_t dim1 = dimFromFront(arguments.integer(2), rank);
  Sizes &sizes = addResult(results, dtype, arguments.sizes(0)).sizes;
  if (rank > 0)
    std::swap(sizes[dim0], sizes[dim1]);
  return true;
}

bool shape_rules::t(const Arguments &arguments, ScalarType dtype,
                    ResultShapes &results) {
  int64_t rank = arguments.rank(0);
  TORCH_CHECK(rank <= 2,
              "t() expects a tensor with <= 2 dimensions, but self "
              "is ",
              rank, "D");
  Sizes &sizes = addResult(results, dtype, arguments.sizes(0)).sizes;
  if (rank == 2)
    std::swap(sizes[0], sizes[1]);
  return true;
}

bool shape_rules::unsqueeze(const Arguments &arguments, ScalarType dtype,
                            ResultShapes &results) {
  int64_t dim = dimFromFront(arguments.integer(1), arguments.rank(0) + 1);
  Sizes &sizes = addResult(results, dtype, arguments.sizes(0)).sizes;
  sizes.insert(sizes.begin() + dim, 1);
  return true;
}

bool shape_rules::squeeze(const Arguments &arguments, ScalarType dtype,
                          ResultShapes &results) {
  SizesRef self = arguments.sizes(0);
  std::bitset<64> squeezed;
  if (arguments.size() == 1) {
    squeezed.set();
  } else {
    for (int64_t dim : arguments.integers(1)) {
      int64_t wrapped = dimFromFront(dim, self.size());
      TORCH_CHECK(!squeezed[wrapped], "dim ", wrapped,
                  " appears multiple times in the list of dims");
      squeezed.set(wrapped);
    }
  }
  ResultShape &result = results.emplace_back();
  result.dtype = dtype;
  for (size_t i = 0; i < self.size(); ++i)
    if (self[i] != 1 || !squeezed[i])
      result.sizes.push_back(self[i]);
  return true;
}

namespace {

/// Returns the sizes of element `index` of `self` along `dim`: those of `self`
/// without `dim`.
Sizes selectSizes(SizesRef self, int64_t dim, int64_t index) {
  TORCH_CHECK_INDEX(!self.empty(),
                    "select() cannot be applied to a 0-dim tensor.");
  dim = dimFromFront(dim, self.size());
  TORCH_CHECK_INDEX(
      index >= -self[dim] && index < self[dim], "select(): index ", index,
      " out of range for tensor of size ", self, " at dimension ", dim);
  Sizes result(self);
  result.erase(result.begin() + dim);
  return result;
}

Sizes sliceSizes(SizesRef self, int64_t dim, std::optional<int64_t> start,
                 std::optional<int64_t> end, int64_t step) {
  TORCH_CHECK_INDEX(!self.empty(),
                    "slice() cannot be applied to a 0-dim tensor.");
  TORCH_CHECK(step > 0, "slice step must be positive");
  Sizes result(self);
  int64_t &extent = result[dimFromFront(dim, self.size())];
  auto position = [&](std::optional<int64_t> index, int64_t otherwise) {
    int64_t value = index.value_or(otherwise);
    return std::clamp<int64_t>(value < 0 ? value + extent : value, 0, extent);
  };
  int64_t first = position(start, 0), last = position(end, extent);
  // (last - first + step - 1) / step would overflow for a huge step.
  extent = last > first ? (last - first - 1) / step + 1 : 0;
  return result;
}

Sizes diagonalSizes(SizesRef self, int64_t offset, int64_t dim1, int64_t dim2) {
  dim1 = dimFromFront(dim1, self.size());
  dim2 = dimFromFront(dim2, self.size());
  TORCH_CHECK(dim1 != dim2, "diagonal dimensions cannot be identical ", dim1,
              ", ", dim2);
  int64_t rows = self[dim1], columns = self[dim2];
  int64_t length = offset >= 0 ? std::min(rows, columns - offset)
                               : std::min(rows + offset, columns);
  Sizes result;
  for (int64_t i = 0; i < int64_t(self.size()); ++i)
    if (i != dim1 && i != dim2)
      result.push_back(self[i]);
  result.push_back(std::max<int64_t>(length, 0));
  return result;
}

Sizes stridedSizes(const Arguments &arguments, size_t size) {
  Sizes sizes = arguments.integers(size),
        strides = arguments.integers(size + 1);
  int64_t offset = arguments.optionalInteger(size + 2).value_or(0);
  TORCH_CHECK(sizes.size() == strides.size(),
              "mismatch in length of strides and shape");
  checkNonNegative(sizes);
  int64_t last = offset, elements = numElements(arguments.sizes(0));
  for (size_t i = 0; i < sizes.size(); ++i) {
    TORCH_CHECK(strides[i] >= 0,
                "as_strided: Negative strides are not supported at the "
                "moment, got strides: ",
                SizesRef(strides));
    last += (sizes[i] - 1) * strides[i];
  }
  TORCH_CHECK(offset >= 0, "Tensor: invalid storage offset ", offset);
  TORCH_CHECK(numElements(sizes) == 0 || last < elements, "setStorage: sizes ",
              SizesRef(sizes), ", strides ", SizesRef(strides),
              ", storage offset ", offset, " requiring ", last + 1,
              " elements are out of bounds for storage of ", elements,
              " elements");
  return sizes;
}

/// Adds the result: `self` with `src` written to a part of `self` that has the
/// sizes `part`.
bool addScattered(const Arguments &arguments, ScalarType dtype, SizesRef part,
                  ResultShapes &results) {
  checkSameDType(arguments, {0, 1});
  TORCH_CHECK(arguments.sizes(1) == part,
              "expected src to have a size equal to the slice of self. src "
              "size = ",
              arguments.sizes(1), ", slice size = ", part);
  addResult(results, dtype, arguments.sizes(0));
  return true;
}

} // namespace

bool shape_rules::select(const Arguments &arguments, ScalarType dtype,
                         ResultShapes &results) {
  addResult(results, dtype,
            selectSizes(arguments.sizes(0), arguments.integer(1),
                        arguments.integer(2)));
  return true;
}

bool shape_rules::slice(const Arguments &arguments, ScalarType dtype,
                        ResultShapes &results) {
  addResult(results, dtype,
            sliceSizes(arguments.sizes(0), arguments.integer(1),
                       arguments.optionalInteger(2),
                       arguments.optionalInteger(3), arguments.integer(4)));
  return true;
}

bool shape_rules::diagonal(const Arguments &arguments, ScalarType dtype,
                           ResultShapes &results) {
  addResult(results, dtype,
            diagonalSizes(arguments.sizes(0), arguments.integer(1),
                          arguments.integer(2), arguments.integer(3)));
  return true;
}

bool shape_rules::as_strided(const Arguments &arguments, ScalarType dtype,
                             ResultShapes &results) {
  addResult(results, dtype, stridedSizes(arguments, 1));
  return true;
}

bool shape_rules::select_scatter(const Arguments &arguments, ScalarType dtype,
                                 ResultShapes &results) {
  return addScattered(arguments, dtype,
                      selectSizes(arguments.sizes(0), arguments.integer(2),
                                  arguments.integer(3)),
                      results);
}

bool shape_rules::slice_scatter(const Arguments &arguments, ScalarType dtype,
                                ResultShapes &results) {
  Sizes part = sliceSizes(arguments.sizes(0), arguments.integer(2),
                          arguments.optionalInteger(3),
                          arguments.optionalInteger(4), arguments.integer(5));
  checkSameDType(arguments, {0, 1});
  // Unlike the other scatters into views, slice_scatter broadcasts `src`.
  checkExpandable(arguments.sizes(1), part);
  return self(arguments, dtype, results);
}

bool shape_rules::diagonal_scatter(const Arguments &arguments, ScalarType dtype,
                                   ResultShapes &results) {
  return addScattered(arguments, dtype,
                      diagonalSizes(arguments.sizes(0), arguments.integer(2),
                                    arguments.integer(3), arguments.integer(4)),
                      results);
}

bool shape_rules::as_strided_scatter(const Arguments &arguments,
                                     ScalarType dtype, ResultShapes &results) {
  return addScattered(arguments, dtype, stridedSizes(arguments, 2), results);
}

static Sizes unfoldedSizes(SizesRef self, int64_t dim, int64_t size,
                           int64_t step) {
  Sizes sizes(self);
  dim = dimFromFront(dim, sizes.size());
  int64_t extent = sizes.empty() ? 1 : sizes[dim];
  TORCH_CHECK(size >= 0, "size is ", size, " but must be >= 0");
  TORCH_CHECK(size <= extent, "maximum size for tensor at dimension ", dim,
              " is ", extent, " but size is ", size);
  TORCH_CHECK(step > 0, "step is ", step, " but must be > 0");
  if (!sizes.empty())
    sizes[dim] = (extent - size) / step + 1;
  sizes.push_back(size);
  return sizes;
}

bool shape_rules::unfold(const Arguments &arguments, ScalarType dtype,
                         ResultShapes &results) {
  addResult(results, dtype,
            unfoldedSizes(arguments.sizes(0), arguments.integer(1),
                          arguments.integer(2), arguments.integer(3)));
  return true;
}

/// Adds the gradient of the viewed tensor, whose sizes are argument 1. Argument
/// 0 must have the view's sizes, which `viewed` computes from argument 1.
static bool gradientOfView(const Arguments &arguments, ScalarType dtype,
                           ResultShapes &results,
                           Sizes (*viewed)(const Arguments &, SizesRef)) {
  Sizes sizes = arguments.integers(1);
  checkNonNegative(sizes);
  checkSizes(arguments, 0, viewed(arguments, sizes));
  addResult(results, dtype, sizes);
  return true;
}

bool shape_rules::select_backward(const Arguments &arguments, ScalarType dtype,
                                  ResultShapes &results) {
  return gradientOfView(
      arguments, dtype, results, [](const Arguments &given, SizesRef input) {
        return selectSizes(input, given.integer(2), given.integer(3));
      });
}

bool shape_rules::slice_backward(const Arguments &arguments, ScalarType dtype,
                                 ResultShapes &results) {
  return gradientOfView(
      arguments, dtype, results, [](const Arguments &given, SizesRef input) {
        return sliceSizes(input, given.integer(2), given.integer(3),
                          given.integer(4), given.integer(5));
      });
}

bool shape_rules::diagonal_backward(const Arguments &arguments,
                                    ScalarType dtype, ResultShapes &results) {
  return gradientOfView(
      arguments, dtype, results, [](const Arguments &given, SizesRef input) {
        return diagonalSizes(input, given.integer(2), given.integer(3),
                             given.integer(4));
      });
}

bool shape_rules::unfold_backward(const Arguments &arguments, ScalarType dtype,
                                  ResultShapes &results) {
  return gradientOfView(
      arguments, dtype, results, [](const Arguments &given, SizesRef input) {
        return unfoldedSizes(input, given.integer(2), given.integer(3),
                             given.integer(4));
      });
}
