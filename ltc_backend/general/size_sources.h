//===- size_sources.h - Where the size of a value comes from ----*- C++ -*-===//

#ifndef TORCH_LTC_GENERAL_SIZE_SOURCES_H
#define TORCH_LTC_GENERAL_SIZE_SOURCES_H

#include "graph/graph.h"

#include <optional>
#include <utility>

namespace torch_ltc {

/// Returns the operand, and the operand's dimension, from which dimension `dim`
/// of the op's result `ref` gets its size, as far as the shapes show. An
/// operand of the same shape is preferred: the gradient of a convolution's
/// input has the input's shape.
std::optional<std::pair<ResultRef, uint32_t>>
sourceOfSize(const GraphSnapshot &base, ResultRef ref, uint32_t dim);

/// The dimensions of an operand, from `first` to before `end`, that have as
/// many elements as a dimension of the view times `others`, the elements of the
/// view's other dimensions that come from the same dimensions.
struct ViewedDims {
  ResultRef operand;
  uint32_t first, end;
  int64_t others;
};

/// Returns the fewest dimensions of a view's operand from which dimension `dim`
/// of its result `ref` follows; none if `ref` isn't the result of a view, or
/// has no elements.
std::optional<ViewedDims> viewedDims(const GraphSnapshot &base, ResultRef ref,
                                     uint32_t dim);

} // namespace torch_ltc

#endif // TORCH_LTC_GENERAL_SIZE_SOURCES_H
