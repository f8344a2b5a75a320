//===- fft_strides.cpp - Strides of Fourier transforms --------------------===//

#include "shape/rules/fft_strides.h"

#include <algorithm>
#include <span>

using namespace torch_ltc;

namespace {

/// Sorts `dims` so that the one with the largest stride comes first.
void sortByStride(std::span<int64_t> dims, SizesRef strides) {
  std::ranges::stable_sort(dims, [&](int64_t a, int64_t b) {
    return strides[size_t(a)] > strides[size_t(b)];
  });
}

/// Returns the strides of the result of one call of the library: the
/// transformed dims are innermost, in the order of `transformed`; the others
/// are in the order of the operand's strides.
Strides transformedStrides(SizesRef strides, SizesRef transformed,
                           SizesRef sizes) {
  Sizes order;
  for (int64_t dim = 0; dim < int64_t(strides.size()); ++dim)
    if (std::ranges::find(transformed, dim) == transformed.end())
      order.push_back(dim);
  sortByStride({order.data(), order.size()}, strides);
  order.append(transformed.begin(), transformed.end());
  Strides result(sizes.size(), 1);
  for (int64_t stride = 1; !order.empty(); order.pop_back()) {
    size_t dim = size_t(order.back());
    result[dim] = stride;
    stride *= std::max<int64_t>(sizes[dim], 1);
  }
  return result;
}

} // namespace

Strides torch_ltc::fftStrides(const Arguments &named, SizesRef resultSizes) {
  const at::Tensor &self = named.tensor(0);
  Sizes dims = named.integers(1);
  if (dims.empty())
    return Strides(self.strides());
  for (int64_t &dim : dims)
    dim = c10::maybe_wrap_dim(dim, self.dim());
  Strides strides(self.strides());
  const int64_t last = dims.back();
  if (named.find("last_dim_size")) { // c2r: first the other dims, then `last`
    dims.pop_back();
    sortByStride({dims.data(), dims.size()}, strides);
    if (!dims.empty())
      strides = transformedStrides(strides, dims, self.sizes());
    return transformedStrides(strides, {last}, resultSizes);
  }
  // r2c halves the last dim, so this dim stays last.
  size_t numSorted = dims.size() - (named.find("onesided") ? 1 : 0);
  sortByStride(std::span(dims.data(), numSorted), strides);
  return transformedStrides(strides, dims, resultSizes);
}
