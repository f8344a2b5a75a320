//===- view_strides.cpp - Strides and offsets of views --------------------===//

#include "shape/strides.h"

#include "ir/op_record.h"
#include "shape/rules/arguments.h"

#include <ATen/ExpandUtils.h>
#include <ATen/TensorUtils.h>

#include <algorithm>

using namespace torch_ltc;

namespace {

class ViewGeometry {
public:
  ViewGeometry(const Arguments &arguments, SizesRef resultSizes)
      : arguments(arguments), self(arguments.tensor(0)), sizes(self.sizes()),
        resultSizes(resultSizes) {
    geometry.strides.assign(self.strides().begin(), self.strides().end());
    geometry.offset = self.storage_offset();
  }

  Geometry take() { return std::move(geometry); }

  void view() {
    auto strides =
        at::detail::computeStride(sizes, self.strides(), resultSizes);
    // computeStride usually succeeds, because torch's Meta kernel has already
    // rejected shapes that aren't viewable.
    if (strides)
      geometry.strides.assign(strides->begin(), strides->end());
    else
      geometry.strides = packedStrides(resultSizes);
  }

  void expand() {
    auto expanded =
        at::inferExpandGeometry_dimvector(sizes, self.strides(), resultSizes);
    geometry.strides.assign(expanded.strides.begin(), expanded.strides.end());
  }

  void permute() {
    Sizes dims = arguments.integers(1);
    for (size_t i = 0; i < dims.size(); ++i)
      geometry.strides[i] = self.stride(dims[i]);
  }

  void transpose() {
    if (!sizes.empty())
      std::swap(geometry.strides[dimArgument(1)],
                geometry.strides[dimArgument(2)]);
  }

  void t() {
    if (sizes.size() == 2)
      std::swap(geometry.strides[0], geometry.strides[1]);
  }

  void unsqueeze() {
    int64_t rank = int64_t(sizes.size());
    int64_t dim = dimFromFront(arguments.integer(1), rank + 1);
    int64_t stride = dim < rank ? sizes[dim] * geometry.strides[dim] : 1;
    geometry.strides.insert(geometry.strides.begin() + dim, stride);
  }

  void squeeze() {
    Strides kept;
    c10::SmallVector<bool, 6> squeezed(sizes.size(), arguments.size() == 1);
    if (arguments.size() > 1)
      for (int64_t dim : arguments.integers(1))
        if (!sizes.empty())
          squeezed[dimFromFront(dim, int64_t(sizes.size()))] = true;
    for (size_t i = 0; i < sizes.size(); ++i)
      if (sizes[i] != 1 || !squeezed[i])
        kept.push_back(geometry.strides[i]);
    geometry.strides = kept;
  }

  void select() {
    int64_t dim = dimArgument(1), index = arguments.integer(2);
    index += index < 0 ? sizes[dim] : 0;
    geometry.offset += index * geometry.strides[dim];
    geometry.strides.erase(geometry.strides.begin() + dim);
  }

  void slice() {
    int64_t dim = dimArgument(1);
    int64_t start = arguments.optionalInteger(2).value_or(0);
    start += start < 0 ? sizes[dim] : 0;
    start = std::clamp<int64_t>(start, 0, sizes[dim]);
    geometry.offset += start * geometry.strides[dim];
    geometry.strides[dim] *= arguments.integer(4);
  }

  void diagonal() {
    int64_t offset = arguments.integer(1);
    int64_t dim1 = dimArgument(2), dim2 = dimArgument(3);
    int64_t stride1 = geometry.strides[dim1], stride2 = geometry.strides[dim2];
    if (resultSizes.back() != 0)
      geometry.offset += offset >= 0 ? offset * stride2 : -offset * stride1;
    geometry.strides.erase(geometry.strides.begin() + std::max(dim1, dim2));
    geometry.strides.erase(geometry.strides.begin() + std::min(dim1, dim2));
    geometry.strides.push_back(stride1 + stride2);
  }

  void unfold() {
    if (sizes.empty()) {
      geometry.strides.push_back(1);
      return;
    }
    int64_t &stride = geometry.strides[dimArgument(1)];
    int64_t last = stride;
    stride *= arguments.integer(3);
    geometry.strides.push_back(last);
  }

  void asStrided() {
    geometry.strides = arguments.integers(2);
    geometry.offset =
        arguments.optionalInteger(3).value_or(self.storage_offset());
  }

private:
  int64_t dimArgument(size_t i) const {
    return dimFromFront(arguments.integer(i), int64_t(sizes.size()));
  }

  const Arguments &arguments;
  const at::Tensor &self;
  SizesRef sizes, resultSizes;
  Geometry geometry;
};

} // namespace

Geometry torch_ltc::viewGeometry(ShapeRule shapeRule,
                                 const c10::FunctionSchema &schema,
                                 c10::ArrayRef<c10::IValue> arguments,
                                 c10::ArrayRef<int64_t> resultSizes) {
  Arguments named(schema, arguments);
  ViewGeometry result(named, resultSizes);
  switch (shapeRule) {
  case ShapeRule::viewShape:
    result.view();
    break;
  case ShapeRule::expandShape:
    result.expand();
    break;
  case ShapeRule::permuteShape:
    result.permute();
    break;
  case ShapeRule::transposeShape:
    result.transpose();
    break;
  case ShapeRule::tShape:
    result.t();
    break;
  case ShapeRule::unsqueezeShape:
    result.unsqueeze();
    break;
  case ShapeRule::squeezeShape:
    result.squeeze();
    break;
  case ShapeRule::selectShape:
    result.select();
    break;
  case ShapeRule::sliceShape:
    result.slice();
    break;
  case ShapeRule::diagonalShape:
    result.diagonal();
    break;
  case ShapeRule::unfoldShape:
    result.unfold();
    break;
  case ShapeRule::as_stridedShape:
    result.asStrided();
    break;
  default:
    break;
  }
  return result.take();
}
