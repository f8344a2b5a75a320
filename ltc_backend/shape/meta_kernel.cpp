//===- meta_kernel.cpp - Shapes from PyTorch's Meta kernels ---------------===//

#include "ir/tensor_arguments.h"
#include "shape/shape_inference.h"

#include <ATen/EmptyTensor.h>
#include <ATen/ScalarOps.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/stack.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

using namespace torch_ltc;

namespace {

at::Tensor wrappedNumber(const at::Tensor &tensor) {
  if (tensor.is_cpu())
    return tensor;
  at::Tensor one =
      at::detail::scalar_tensor_static(1, tensor.scalar_type(), at::kCPU);
  one.unsafeGetTensorImpl()->set_wrapped_number(true);
  return one;
}

at::Tensor toMeta(const at::Tensor &tensor) {
  if (!tensor.defined())
    return tensor;
  // PyTorch's Python kernels turn wrapped numbers into Python numbers, so a
  // wrapped number must have a value (torch 2.13).
  if (tensor.unsafeGetTensorImpl()->is_wrapped_number())
    return wrappedNumber(tensor);
  // at::empty would be a dispatcher call, possibly into Python.
  return at::detail::empty_meta(tensor.sizes(), tensor.scalar_type());
}

/// Returns `value` in the form that the Meta kernel needs for `argument`.
c10::IValue toMeta(const c10::Argument &argument, const c10::IValue &value) {
  // Constructors without a device would create CPU tensors.
  if (value.isDevice() || argument.name() == "device")
    return c10::Device(c10::kMeta);
  // The Meta kernel draws nothing, and would reject a CPU generator.
  if (value.isGenerator())
    return c10::IValue();
  return mapTensors(value,
                    [](const at::Tensor &tensor) { return toMeta(tensor); });
}

void addResultShape(const at::Tensor &tensor, ResultShapes &results) {
  ResultShape &result = results.emplace_back();
  if (!tensor.defined())
    return;
  result.dtype = tensor.scalar_type();
  result.sizes.assign(tensor.sizes().begin(), tensor.sizes().end());
}

void callMetaKernel(const c10::OperatorHandle &op, torch::jit::Stack &stack) {
  IgnoredUserModes ignored; // this call isn't the user's
  op.callBoxed(stack);
}

} // namespace

void torch_ltc::inferWithMetaKernel(const c10::OperatorHandle &op,
                                    c10::ArrayRef<c10::IValue> arguments,
                                    ResultShapes &results) {
  results.clear();
  TORCH_CHECK_NOT_IMPLEMENTED(
      op.hasComputedKernelForDispatchKey(c10::DispatchKey::Meta), "The op ",
      op.operator_name(),
      " has no Meta kernel, so the shapes of its results are not known before "
      "it runs; register one with torch.library.register_fake.");
  const c10::FunctionSchema &schema = op.schema();
  torch::jit::Stack stack;
  stack.reserve(arguments.size());
  for (size_t i = 0; i < arguments.size(); ++i)
    stack.push_back(toMeta(schema.arguments()[i], arguments[i]));
  try {
    callMetaKernel(op, stack);
  } catch (c10::Error &error) {
    error.add_context(c10::str("in ", op.operator_name()));
    throw;
  } catch (const std::exception &error) {
    // Converts torch's python_error, which Meta kernels in Python throw, to
    // c10::Error.
    TORCH_CHECK(false, error.what(), " (in ", op.operator_name(), ")");
  }
  for (const c10::IValue &value : stack) {
    if (value.isTensor())
      addResultShape(value.toTensor(), results);
    else if (value.isNone())
      results.emplace_back();
    else
      for (const c10::IValue &element : value.toListRef())
        addResultShape(element.toTensor(), results);
  }
}
