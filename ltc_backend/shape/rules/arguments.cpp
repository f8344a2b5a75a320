//===- arguments.cpp - The arguments of a shape rule ----------------------===//

#include "shape/rules/arguments.h"

#include <ATen/ExpandUtils.h>
#include <c10/core/WrapDimMinimal.h>

#include <algorithm>

using namespace torch_ltc;

std::string Arguments::opName() const {
  std::string_view name = schema.name();
  return std::string(name.substr(name.rfind(':') + 1));
}

static int64_t integerOf(const c10::IValue &value) {
  return value.isInt() ? value.toInt()
                       : value.toSymInt().guard_int(__FILE__, __LINE__);
}

int64_t Arguments::integer(size_t i) const { return integerOf(values[i]); }

Sizes Arguments::integers(size_t i) const {
  const c10::IValue &value = values[i];
  if (!value.isList())
    return {integerOf(value)};
  c10::ArrayRef<c10::IValue> list = value.toListRef();
  Sizes result(list.size(), 0);
  for (size_t i = 0; i < list.size(); ++i)
    result[i] = integerOf(list[i]);
  return result;
}

Sizes Arguments::integers(size_t i, size_t count) const {
  Sizes result = integers(i);
  if (result.size() == 1 && count != 1)
    result.assign(count, int64_t(result[0]));
  return result;
}

int64_t torch_ltc::dimFromFront(int64_t dim, int64_t rank) {
  return c10::maybe_wrap_dim(dim, rank);
}

ResultShape &torch_ltc::addResult(ResultShapes &results, at::ScalarType dtype,
                                  SizesRef sizes) {
  ResultShape &result = results.emplace_back();
  result.dtype = dtype;
  result.sizes.assign(sizes.begin(), sizes.end());
  return result;
}

void torch_ltc::addUndefined(ResultShapes &results) { results.emplace_back(); }

int64_t torch_ltc::numElements(SizesRef sizes) {
  int64_t result = 1;
  for (int64_t size : sizes)
    result *= size;
  return result;
}

void torch_ltc::broadcastInto(Sizes &result, SizesRef sizes) {
  if (SizesRef(result) == sizes)
    return;
  if (sizes.size() > result.size())
    result.insert(result.begin(), sizes.size() - result.size(), 1);
  size_t offset = result.size() - sizes.size();
  for (size_t i = sizes.size(); i-- > 0;) {
    int64_t &size = result[offset + i];
    TORCH_CHECK(size == sizes[i] || size == 1 || sizes[i] == 1,
                "The size of tensor a (", size,
                ") must match the size of tensor b (", sizes[i],
                ") at non-singleton dimension ", offset + i);
    if (size == 1)
      size = sizes[i];
  }
}

void torch_ltc::checkExpandable(SizesRef sizes, SizesRef target) {
  if (sizes == target)
    return;
  TORCH_CHECK(sizes.size() <= target.size(),
              "expand: the number of sizes "
              "provided (",
              target.size(),
              ") must be greater or equal to the number of dimensions in the "
              "tensor (",
              sizes.size(), ")");
  // The second argument should be the strides, but the function only uses them
  // to compute strides, which aren't needed here.
  at::inferExpandGeometry_dimvector(sizes, sizes, target);
}

void torch_ltc::checkNonNegative(SizesRef sizes) {
  for (int64_t size : sizes)
    TORCH_CHECK(size >= 0, "Trying to create tensor with negative dimension ",
                size, ": ", sizes);
}

void torch_ltc::checkSizes(const Arguments &arguments, size_t i,
                           SizesRef sizes) {
  TORCH_CHECK(!arguments.has(i) || arguments.sizes(i) == sizes, "expected ",
              arguments.name(i), " of size ", sizes, ", but got ",
              arguments.has(i) ? arguments.sizes(i) : SizesRef());
}

void torch_ltc::checkSameDType(const Arguments &arguments,
                               std::initializer_list<size_t> tensors) {
  std::optional<size_t> first;
  for (size_t i : tensors) {
    if (!arguments.has(i))
      continue;
    size_t other = first.value_or(i);
    TORCH_CHECK(arguments.dtype(other) == arguments.dtype(i), "expected ",
                arguments.name(other), " and ", arguments.name(i),
                " to have the same dtype, but got: ",
                c10::toString(arguments.dtype(other)),
                " != ", c10::toString(arguments.dtype(i)));
    first = other;
  }
}

void torch_ltc::checkFloating(const Arguments &arguments,
                              std::initializer_list<size_t> tensors) {
  checkSameDType(arguments, tensors);
  for (size_t i : tensors)
    TORCH_CHECK(!arguments.has(i) || c10::isFloatingType(arguments.dtype(i)),
                "expected ", arguments.name(i),
                " of a floating-point type, but got ",
                c10::toString(arguments.dtype(i)));
}
