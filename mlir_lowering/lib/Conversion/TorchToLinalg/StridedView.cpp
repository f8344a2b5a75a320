//===- StridedView.cpp - Elements by index arithmetic ---------------------===//

#include "StridedView.h"

#include "IndexBuilder.h"

using namespace mlir;
using namespace mlir::torch_ltc;

bool StridedView::isInBounds(int64_t elements) const {
  int64_t lowest = offset, highest = offset;
  for (auto [size, stride] : llvm::zip_equal(sizes, strides)) {
    if (size == 0)
      return true;
    (stride < 0 ? lowest : highest) += (size - 1) * stride;
  }
  return lowest >= 0 && highest < elements;
}

SmallVector<int64_t> StridedView::positions() const {
  SmallVector<int64_t> result{offset};
  for (auto [size, stride] : llvm::zip_equal(sizes, strides)) {
    SmallVector<int64_t> outer = std::move(result);
    result.clear();
    for (int64_t position : outer)
      for (int64_t i = 0; i < size; ++i)
        result.push_back(position + i * stride);
  }
  return result;
}

StridedView torch_ltc::diagonalOf(ArrayRef<int64_t> sizes, int64_t offset,
                                  int64_t dim1, int64_t dim2) {
  SmallVector<int64_t> strides = rowMajorStrides(sizes);
  StridedView view;
  for (auto [dim, size] : llvm::enumerate(sizes)) {
    int64_t position = static_cast<int64_t>(dim);
    if (position == dim1 || position == dim2)
      continue;
    view.sizes.push_back(size);
    view.strides.push_back(strides[dim]);
  }
  int64_t rows = sizes[dim1], columns = sizes[dim2];
  int64_t length = offset >= 0 ? std::min(rows, columns - offset)
                               : std::min(rows + offset, columns);
  view.sizes.push_back(std::max<int64_t>(length, 0));
  view.strides.push_back(strides[dim1] + strides[dim2]);
  view.offset = offset >= 0 ? offset * strides[dim2] : -offset * strides[dim1];
  return view;
}

StridedView torch_ltc::windowsOf(ArrayRef<int64_t> sizes, int64_t dim,
                                 int64_t size, int64_t step) {
  StridedView view{SmallVector<int64_t>(sizes), rowMajorStrides(sizes), 0};
  // A tensor of rank 0 is treated as a tensor of sizes [1].
  if (sizes.empty())
    return {{size}, {1}, 0};
  int64_t stride = view.strides[dim];
  view.sizes[dim] = (sizes[dim] - size) / step + 1;
  view.strides[dim] = stride * step;
  view.sizes.push_back(size);
  view.strides.push_back(stride);
  return view;
}

float torch_ltc::nearestScale(int64_t input, int64_t output,
                              std::optional<double> given) {
  return given && *given > 0
             ? static_cast<float>(1.0 / *given)
             : static_cast<float>(input) / static_cast<float>(output);
}

SmallVector<int64_t> torch_ltc::nearestSources(int64_t input, int64_t output,
                                               std::optional<double> given) {
  float scale = nearestScale(input, output, given);
  SmallVector<int64_t> sources;
  for (int64_t i = 0; i < output; ++i) {
    auto source =
        static_cast<int64_t>(std::floor(static_cast<float>(i) * scale));
    sources.push_back(std::min(source, input - 1));
  }
  return sources;
}
