//===- draws.h - Random numbers in a trace ----------------------*- C++ -*-===//

#ifndef TORCH_LTC_OPS_DRAWS_H
#define TORCH_LTC_OPS_DRAWS_H

#include "execution/recording.h"

#include <ATen/core/Tensor.h>
#include <c10/util/FunctionRef.h>
#include <torch/library.h>

#include <string>

namespace torch_ltc {

/// Returns a tensor on device lazy with the numbers and strides that `draw`
/// returns. `draw` must return a new CPU tensor at each call; if it gets sizes,
/// the tensor has these instead of the traced ones. An open recording
/// stores `draw`, and the result of `distribution`, such as "bernoulli(0.5)".
at::Tensor drawn(Draw draw, c10::function_ref<std::string()> distribution);

/// The memory of a draw.
struct DrawnMemory {
  std::vector<int64_t> sizes;
  Strides strides;
  at::TensorOptions options;

  /// Returns an uninitialized CPU tensor of these sizes, or of `other` sizes
  /// with its elements in the same order in memory.
  at::Tensor allocate(at::OptionalIntArrayRef other) const;
};

/// Returns `value` (floats or int64). If an element of `isValid` is false, the
/// step that computes the result fails with `message`, the error that eager
/// raises at the call.
at::Tensor checked(const at::Tensor &value, const at::Tensor &isValid,
                   const char *message);

/// Whether `values`, an operand, can be read without waiting, has few elements,
/// and `isValid` doesn't hold for it. Then the op raises eager's error before
/// it draws, so that the generator keeps its state.
bool isRejected(const at::Tensor &values,
                c10::function_ref<bool(const at::Tensor &)> isValid);

/// Registers kernels of ops whose distributions are given by tensors; see
/// draws_of_tensors.cpp.
void registerDrawsOfTensors(torch::Library &library);

} // namespace torch_ltc

#endif // TORCH_LTC_OPS_DRAWS_H
