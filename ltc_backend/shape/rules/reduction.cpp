//===- reduction.cpp - Sizes of reductions, scans and sorts ---------------===//

#include "shape/rules/rules.h"

#include <bitset>

using namespace torch_ltc;
using at::ScalarType;

namespace {

using DimSet = std::bitset<64>;

/// Returns the dims that the argument `dim` names, or all dims if `dim` is
/// absent or None, or if it is an empty list and `emptyIsAll` is set.
DimSet reducedDims(const Arguments &arguments, int64_t rank,
                   bool emptyIsAll = true) {
  TORCH_CHECK(rank <= 64, "only tensors with up to 64 dims are supported");
  DimSet dims;
  std::optional<size_t> position = arguments.find("dim");
  if (position && !arguments[*position].isList()) {
    dims.set(dimFromFront(arguments.integer(*position), rank));
    return dims;
  }
  if (!position || (emptyIsAll && arguments[*position].toListRef().empty()))
    return dims.set();
  for (int64_t dim : arguments.integers(*position)) {
    int64_t wrapped = dimFromFront(dim, rank);
    TORCH_CHECK(!dims[wrapped], "dim ", wrapped,
                " appears multiple times in the list of dims");
    dims.set(wrapped);
  }
  return dims;
}

void addReduced(const Arguments &arguments, const DimSet &dims,
                ScalarType dtype, ResultShapes &results) {
  SizesRef sizes = arguments.sizes(0);
  bool keep = arguments.flag("keepdim");
  ResultShape &result = results.emplace_back();
  result.dtype = dtype;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (!dims[i])
      result.sizes.push_back(sizes[i]);
    else if (keep)
      result.sizes.push_back(1);
  }
}

/// Throws eager's error if the op would compute an extremum of no elements.
void checkNotEmpty(const Arguments &arguments, const DimSet &dims) {
  SizesRef sizes = arguments.sizes(0);
  if (numElements(sizes) != 0)
    return;
  std::optional<size_t> position = arguments.find("dim");
  TORCH_CHECK_INDEX(position && !(arguments[*position].isList() &&
                                  arguments[*position].toListRef().empty()),
                    arguments.opName(),
                    "(): Expected reduction dim to be specified for "
                    "input.numel() == 0. Specify the reduction dim with the "
                    "'dim' argument.");
  for (size_t i = 0; i < sizes.size(); ++i)
    TORCH_CHECK_INDEX(!dims[i] || sizes[i] != 0, arguments.opName(),
                      "(): Expected reduction dim ", i,
                      " to have non-zero size.");
}

int64_t wrappedDim(const Arguments &arguments) {
  std::optional<size_t> dim = arguments.find("dim");
  return dimFromFront(arguments.integer(*dim), arguments.rank(0));
}

} // namespace

bool shape_rules::reduction(const Arguments &arguments, ScalarType dtype,
                            ResultShapes &results) {
  addReduced(arguments, reducedDims(arguments, arguments.rank(0)), dtype,
             results);
  return true;
}

// The rule of reductions that reduce nothing if the list of dims is empty.
bool shape_rules::listed_reduction(const Arguments &arguments, ScalarType dtype,
                                   ResultShapes &results) {
  addReduced(arguments,
             reducedDims(arguments, arguments.rank(0), /*emptyIsAll=*/false),
             dtype, results);
  return true;
}

bool shape_rules::norm(const Arguments &arguments, ScalarType dtype,
                       ResultShapes &results) {
  // Some norms are undefined for empty tensors, and all norms for integers.
  if (numElements(arguments.sizes(0)) == 0 ||
      !c10::isFloatingType(arguments.dtype(0)) || !c10::isFloatingType(dtype))
    return false;
  return reduction(arguments, dtype, results);
}

bool shape_rules::extremum(const Arguments &arguments, ScalarType dtype,
                           ResultShapes &results) {
  DimSet dims = reducedDims(arguments, arguments.rank(0));
  checkNotEmpty(arguments, dims);
  addReduced(arguments, dims, dtype, results);
  return true;
}

bool shape_rules::extremum_pair(const Arguments &arguments, ScalarType dtype,
                                ResultShapes &results) {
  extremum(arguments, dtype, results);
  addResult(results, ScalarType::Long, Sizes(results[0].sizes));
  return true;
}

bool shape_rules::floating_reduction(const Arguments &arguments,
                                     ScalarType dtype, ResultShapes &results) {
  TORCH_CHECK(c10::isFloatingType(dtype) || c10::isComplexType(dtype),
              arguments.opName(),
              "(): could not infer output dtype. Input dtype must be either a "
              "floating point or complex dtype. Got: ",
              c10::toString(dtype));
  return reduction(arguments, dtype, results);
}

bool shape_rules::reduction_pair(const Arguments &arguments, ScalarType dtype,
                                 ResultShapes &results) {
  floating_reduction(arguments, dtype, results);
  addResult(results, dtype, Sizes(results[0].sizes));
  return true;
}

bool shape_rules::scan(const Arguments &arguments, ScalarType dtype,
                       ResultShapes &results) {
  wrappedDim(arguments);
  if (arguments[1].isTensor()) { // gradients of softmax
    checkSizes(arguments, 1, arguments.sizes(0));
    checkFloating(arguments, {0, 1});
    TORCH_CHECK(arguments.dtype(0) == dtype, "expected ", arguments.name(0),
                " of dtype ", c10::toString(dtype));
  }
  return self(arguments, dtype, results);
}

bool shape_rules::softmax(const Arguments &arguments, ScalarType dtype,
                          ResultShapes &results) {
  // Only CUDA's kernel can convert float16 to float32 (half_to_float).
  return dtype == arguments.dtype(0) && !arguments.flag(2) &&
         scan(arguments, dtype, results);
}

bool shape_rules::sort(const Arguments &arguments, ScalarType dtype,
                       ResultShapes &results) {
  wrappedDim(arguments);
  addResult(results, dtype, arguments.sizes(0));
  addResult(results, ScalarType::Long, arguments.sizes(0));
  return true;
}

bool shape_rules::topk(const Arguments &arguments, ScalarType dtype,
                       ResultShapes &results) {
  int64_t dim = wrappedDim(arguments), k = arguments.integer(1);
  Sizes sizes(arguments.sizes(0));
  int64_t extent = sizes.empty() ? 1 : sizes[dim];
  TORCH_CHECK(k >= 0 && k <= extent, "selected index k out of range");
  if (!sizes.empty())
    sizes[dim] = k;
  addResult(results, dtype, sizes);
  addResult(results, ScalarType::Long, sizes);
  return true;
}
