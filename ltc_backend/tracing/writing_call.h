//===- writing_call.h - A call that writes, run eagerly ---------*- C++ -*-===//

#ifndef TORCH_LTC_TRACING_WRITING_CALL_H
#define TORCH_LTC_TRACING_WRITING_CALL_H

#include "ir/tensor_arguments.h"

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

#include <string>

namespace torch_ltc {

/// Whether `predicate` holds for a defined tensor in `values` or in their
/// lists.
template <typename Predicate>
bool anyTensor(c10::ArrayRef<c10::IValue> values, Predicate predicate) {
  bool any = false;
  for (const c10::IValue &value : values)
    mapTensors(value, [&](const at::Tensor &tensor) {
      any = any || (tensor.defined() && predicate(tensor));
      return tensor;
    });
  return any;
}

/// Whether `tensor` is a functional wrapper around a lazy tensor, and not
/// around a tensor subclass, as while torch.compile traces.
bool isLazyWrapper(const at::Tensor &tensor);

/// Runs the op's CPU kernel on copies of its arguments, which have the
/// arguments' strides and share memory as the arguments do, and writes the new
/// values into the arguments, also into those that the schema doesn't declare
/// as written. Replaces the arguments in `stack`, functional
/// wrappers as the user holds them, by the results.
void runWritingCall(const c10::OperatorHandle &op, torch::jit::Stack &stack,
                    const std::string &reason);

/// Writes `value`, a lazy tensor without wrapper, to `tensor`, a functional
/// wrapper as the user holds it. Converts `value` to the tensor's dtype. If the
/// sizes are equal, `tensor` keeps its strides; otherwise it is resized.
void writeResult(const at::Tensor &tensor, at::Tensor value);

} // namespace torch_ltc

#endif // TORCH_LTC_TRACING_WRITING_CALL_H
