//===- padding.cpp - Sizes of padded tensors ------------------------------===//

#include "shape/rules/rules.h"

#include <algorithm>

using namespace torch_ltc;
using at::ScalarType;

bool shape_rules::constant_pad(const Arguments &arguments, ScalarType dtype,
                               ResultShapes &results) {
  Sizes sizes(arguments.sizes(0)), pad = arguments.integers(1);
  TORCH_CHECK(pad.size() % 2 == 0,
              "Length of pad must be even but instead it equals ", pad.size());
  TORCH_CHECK(pad.size() / 2 <= sizes.size(),
              "Length of pad should be no more than twice the number of "
              "dimensions of the input. Pad length is ",
              pad.size(), " while the input has ", sizes.size(),
              " dimensions.");
  for (size_t i = 0; i < pad.size() / 2; ++i) {
    int64_t dim = int64_t(sizes.size() - 1 - i);
    int64_t &size = sizes[dim];
    int64_t front = pad[2 * i], back = pad[2 * i + 1];
    int64_t padded = size + front + back;
    TORCH_CHECK(padded >= 0, "The input size ", size,
                ", plus negative padding ", front, " and ", back,
                ", resulted in a negative output size, which is invalid. Check "
                "dimension ",
                dim, " of your input.");
    // Eager crops both ends by negative padding before it pads.
    int64_t cropped = size + std::min<int64_t>(front, 0);
    TORCH_CHECK(cropped >= 0 && cropped + std::min<int64_t>(back, 0) >= 0,
                "narrow(): length must be non-negative.");
    size = padded;
  }
  addResult(results, dtype, sizes);
  return true;
}

namespace {

/// Adds the result of reflection or replication padding along the last
/// `numDims` dims. The input may have a batch dim, whose size may be 0.
bool addPadded(const Arguments &arguments, ScalarType dtype, size_t numDims,
               bool reflects, ResultShapes &results) {
  Sizes sizes(arguments.sizes(0)), pad = arguments.integers(1, 2 * numDims);
  TORCH_CHECK(pad.size() == 2 * numDims, "padding size is expected to be ",
              2 * numDims);
  bool ranked = sizes.size() == numDims + 1 || sizes.size() == numDims + 2;
  size_t first = sizes.size() == numDims + 2 ? 1 : 0;
  TORCH_CHECK(ranked && std::find(sizes.begin() + first, sizes.end(), 0) ==
                            sizes.end(),
              "Expected ", numDims + 1, "D or ", numDims + 2,
              "D (batch mode) tensor with possibly 0 batch size and other "
              "non-zero dimensions for input, but got: ",
              SizesRef(sizes));
  bool isEmpty = true;
  for (size_t i = 0; i < numDims; ++i) {
    size_t dim = sizes.size() - 1 - i;
    int64_t before = pad[2 * i], after = pad[2 * i + 1];
    TORCH_CHECK(!reflects || (before < sizes[dim] && after < sizes[dim]),
                "Argument #4: Padding size should be less than the "
                "corresponding input dimension, but got: padding (",
                before, ", ", after, ") at dimension ", dim, " of input ",
                SizesRef(sizes));
    int64_t padded = sizes[dim] + before + after;
    TORCH_CHECK(padded >= 0, "input (size: ", sizes[dim], " at dimension ", dim,
                ") is too small. Calculated output size: ", padded);
    sizes[dim] = padded;
    isEmpty &= padded == 0;
  }
  TORCH_CHECK(!isEmpty,
              "input is too small. Calculated output size: ", SizesRef(sizes));
  addResult(results, dtype, sizes);
  return true;
}

} // namespace

bool shape_rules::reflection_pad1d(const Arguments &arguments, ScalarType dtype,
                                   ResultShapes &results) {
  return addPadded(arguments, dtype, 1, /*reflects=*/true, results);
}

bool shape_rules::reflection_pad2d(const Arguments &arguments, ScalarType dtype,
                                   ResultShapes &results) {
  return addPadded(arguments, dtype, 2, /*reflects=*/true, results);
}

bool shape_rules::replication_pad1d(const Arguments &arguments,
                                    ScalarType dtype, ResultShapes &results) {
  return addPadded(arguments, dtype, 1, /*reflects=*/false, results);
}

bool shape_rules::replication_pad2d(const Arguments &arguments,
                                    ScalarType dtype, ResultShapes &results) {
  return addPadded(arguments, dtype, 2, /*reflects=*/false, results);
}
