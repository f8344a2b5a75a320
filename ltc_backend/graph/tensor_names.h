//===- tensor_names.h - Names and marks of values ---------------*- C++ -*-===//
//
// A name belongs to the tensor that the user holds (the functional wrapper),
// whose value changes with each in-place update; data gets the name when it
// becomes that tensor's value.
//
//===----------------------------------------------------------------------===//

#ifndef TORCH_LTC_GRAPH_TENSOR_NAMES_H
#define TORCH_LTC_GRAPH_TENSOR_NAMES_H

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>

namespace torch_ltc {

void setTensorName(const at::Tensor &tensor, const std::string &name);
/// Returns "" if the tensor has no name.
std::string tensorName(const at::Tensor &tensor);

/// Removes the tensor's name, which includes a weak reference to the tensor.
void removeTensorName(const at::Tensor &tensor);

/// Adds a mark to the tensor's value (memory/size_marks.h). An in-place update
/// keeps the mark. Returns false if the value isn't computed yet, or if the
/// tensor is a view that doesn't keep its value.
bool markSize(const at::Tensor &tensor, uint32_t dim, bool isDynamic,
              int64_t least, int64_t most);

/// Assigns the names of all named tensors to their current data. Called in each
/// execution; costs nothing while no tensor has a name.
void nameData();

} // namespace torch_ltc

#endif // TORCH_LTC_GRAPH_TENSOR_NAMES_H
