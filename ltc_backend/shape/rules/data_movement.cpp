//===- data_movement.cpp - Sizes after joining, splitting, repeating ------===//

#include "shape/rules/rules.h"

#include <c10/core/WrapDimMinimal.h>

#include <algorithm>
#include <bitset>

using namespace torch_ltc;
using at::ScalarType;

namespace {

/// cat() skips empty vectors, whatever the rank of the other tensors.
bool isSkipped(SizesRef sizes) { return sizes.size() == 1 && sizes[0] == 0; }

void catInto(Sizes &result, SizesRef sizes, int64_t dim, size_t position) {
  TORCH_CHECK(result.size() == sizes.size(),
              "Tensors must have same number of dimensions: got ",
              result.size(), " and ", sizes.size());
  for (int64_t i = 0; i < int64_t(sizes.size()); ++i) {
    if (i == dim)
      result[i] += sizes[i];
    else
      TORCH_CHECK(result[i] == sizes[i],
                  "Sizes of tensors must match except in dimension ", dim,
                  ". Expected size ", result[i], " but got size ", sizes[i],
                  " for tensor number ", position, " in the list.");
  }
}

} // namespace

bool shape_rules::cat(const Arguments &arguments, ScalarType dtype,
                      ResultShapes &results) {
  c10::ArrayRef<c10::IValue> tensors = arguments[0].toListRef();
  Sizes *result = nullptr;
  int64_t dim = arguments.integer(1);
  for (size_t i = 0; i < tensors.size(); ++i) {
    SizesRef sizes = tensors[i].toTensor().sizes();
    TORCH_CHECK(!sizes.empty(), "zero-dimensional tensor (at position ", i,
                ") cannot be concatenated");
    if (isSkipped(sizes))
      continue;
    if (result) {
      catInto(*result, sizes, dim, i);
      continue;
    }
    dim = dimFromFront(dim, sizes.size());
    result = &addResult(results, dtype, sizes).sizes;
  }
  if (!result)
    addResult(results, dtype, {0});
  return true;
}

bool shape_rules::stack(const Arguments &arguments, ScalarType dtype,
                        ResultShapes &results) {
  c10::ArrayRef<c10::IValue> tensors = arguments[0].toListRef();
  TORCH_CHECK(!tensors.empty(), "stack expects a non-empty TensorList");
  SizesRef first = tensors[0].toTensor().sizes();
  for (size_t i = 1; i < tensors.size(); ++i)
    TORCH_CHECK(tensors[i].toTensor().sizes() == first,
                "stack expects each tensor to be equal size, but got ", first,
                " at entry 0 and ", tensors[i].toTensor().sizes(), " at entry ",
                i);
  int64_t dim = dimFromFront(arguments.integer(1), first.size() + 1);
  Sizes &sizes = addResult(results, dtype, first).sizes;
  sizes.insert(sizes.begin() + dim, tensors.size());
  return true;
}

bool shape_rules::split(const Arguments &arguments, ScalarType dtype,
                        ResultShapes &results) {
  Sizes sizes(arguments.sizes(0));
  TORCH_CHECK(!sizes.empty(), "split expects at least a 1-dimensional tensor");
  int64_t step = arguments.integer(1);
  TORCH_CHECK(
      step >= 0,
      "split expects split_size be non-negative, but got split_size=", step);
  int64_t dim = dimFromFront(arguments.integer(2), sizes.size());
  int64_t extent = sizes[dim];
  TORCH_CHECK(step > 0 || extent == 0,
              "split_size can only be 0 if dimension size is 0, but got "
              "dimension size of ",
              extent);
  int64_t begin = 0;
  do {
    sizes[dim] = std::min(step, extent - begin);
    addResult(results, dtype, sizes);
    begin += step;
  } while (begin < extent);
  return true;
}

bool shape_rules::split_with_sizes(const Arguments &arguments, ScalarType dtype,
                                   ResultShapes &results) {
  Sizes sizes(arguments.sizes(0));
  TORCH_CHECK(!sizes.empty(),
              "split_with_sizes expects at least a 1-dimensional tensor");
  Sizes parts = arguments.integers(1);
  int64_t dim = dimFromFront(arguments.integer(2), sizes.size());
  int64_t extent = sizes[dim], sum = 0;
  for (int64_t part : parts) {
    TORCH_CHECK(part >= 0,
                "split_with_sizes expects split_sizes have only non-negative "
                "entries, but got split_sizes=",
                SizesRef(parts));
    sum += part;
    sizes[dim] = part;
    addResult(results, dtype, sizes);
  }
  TORCH_CHECK(sum == extent,
              "split_with_sizes expects split_sizes to sum exactly to ", extent,
              " (input tensor's size at dimension ", dim,
              "), but got split_sizes=", SizesRef(parts));
  return true;
}

bool shape_rules::unbind(const Arguments &arguments, ScalarType dtype,
                         ResultShapes &results) {
  Sizes sizes(arguments.sizes(0));
  TORCH_CHECK_INDEX(!sizes.empty(), "Dimension specified as ",
                    arguments.integer(1), " but tensor has no dimensions");
  int64_t dim = dimFromFront(arguments.integer(1), sizes.size());
  int64_t extent = sizes[dim];
  sizes.erase(sizes.begin() + dim);
  for (int64_t i = 0; i < extent; ++i)
    addResult(results, dtype, sizes);
  return true;
}

bool shape_rules::repeat(const Arguments &arguments, ScalarType dtype,
                         ResultShapes &results) {
  SizesRef self = arguments.sizes(0);
  Sizes sizes = arguments.integers(1);
  TORCH_CHECK(sizes.size() >= self.size(),
              "Number of dimensions of repeat dims can not be smaller than "
              "number of dimensions of tensor");
  size_t offset = sizes.size() - self.size();
  for (size_t i = 0; i < self.size(); ++i)
    sizes[offset + i] *= self[i];
  checkNonNegative(sizes);
  addResult(results, dtype, sizes);
  return true;
}

bool shape_rules::flip(const Arguments &arguments, ScalarType dtype,
                       ResultShapes &results) {
  std::bitset<64> seen;
  for (int64_t dim : arguments.integers(1)) {
    int64_t wrapped = dimFromFront(dim, arguments.rank(0));
    TORCH_CHECK(!seen[wrapped], "dim ", wrapped,
                " appears multiple times in the list of dims");
    seen.set(wrapped);
  }
  return self(arguments, dtype, results);
}

bool shape_rules::roll(const Arguments &arguments, ScalarType dtype,
                       ResultShapes &results) {
  Sizes shifts = arguments.integers(1), dims = arguments.integers(2);
  TORCH_CHECK(!shifts.empty(), "`shifts` required");
  TORCH_CHECK(shifts.size() == dims.size() ||
                  (dims.empty() && shifts.size() == 1),
              "shifts and dimensions must align. shifts: ", shifts.size(),
              ", dims:", dims.size());
  // torch doesn't check dims if the tensor has no elements.
  if (numElements(arguments.sizes(0)) != 0)
    for (int64_t dim : dims)
      c10::maybe_wrap_dim(dim, arguments.rank(0), /*wrap_scalar=*/false);
  return self(arguments, dtype, results);
}

bool shape_rules::triangle(const Arguments &arguments, ScalarType dtype,
                           ResultShapes &results) {
  TORCH_CHECK(arguments.rank(0) >= 2, arguments.opName(),
              ": input tensor must have at least 2 dimensions");
  return self(arguments, dtype, results);
}

bool shape_rules::pixel_shuffle(const Arguments &arguments, ScalarType dtype,
                                ResultShapes &results) {
  Sizes sizes(arguments.sizes(0));
  int64_t factor = arguments.integer(1);
  TORCH_CHECK(sizes.size() >= 3,
              "pixel_shuffle expects input to have at least 3 dimensions, but "
              "got input with ",
              sizes.size(), " dimension(s)");
  TORCH_CHECK(factor > 0,
              "pixel_shuffle expects a positive upscale_factor, but got ",
              factor);
  int64_t &channels = sizes[sizes.size() - 3];
  TORCH_CHECK(channels % (factor * factor) == 0,
              "pixel_shuffle expects its input's 'channel' dimension to be "
              "divisible by the square of upscale_factor, but "
              "input.size(-3)=",
              channels, " is not divisible by ", factor * factor);
  channels /= factor * factor;
  sizes[sizes.size() - 2] *= factor;
  sizes[sizes.size() - 1] *= factor;
  addResult(results, dtype, sizes);
  return true;
}

bool shape_rules::pixel_unshuffle(const Arguments &arguments, ScalarType dtype,
                                  ResultShapes &results) {
  Sizes sizes(arguments.sizes(0));
  int64_t factor = arguments.integer(1);
  TORCH_CHECK(sizes.size() >= 3,
              "pixel_unshuffle expects input to have at least 3 dimensions, "
              "but got input with ",
              sizes.size(), " dimension(s)");
  TORCH_CHECK(factor > 0,
              "pixel_unshuffle expects a positive downscale_factor, but got ",
              factor);
  for (size_t dim : {sizes.size() - 2, sizes.size() - 1}) {
    TORCH_CHECK(sizes[dim] % factor == 0,
                "pixel_unshuffle expects height and width to be divisible by "
                "downscale_factor, but size ",
                sizes[dim], " is not divisible by ", factor);
    sizes[dim] /= factor;
  }
  sizes[sizes.size() - 3] *= factor * factor;
  // Eager returns an empty operand unchanged (torch 2.13).
  addResult(results, dtype,
            numElements(sizes) ? sizes : Sizes(arguments.sizes(0)));
  return true;
}
