//===- host_calls.h - Commands computed by PyTorch's kernels ----*- C++ -*-===//

#ifndef TORCH_LTC_PROGRAMS_HOST_CALLS_H
#define TORCH_LTC_PROGRAMS_HOST_CALLS_H

#include <ATen/core/Tensor.h>
#include <ATen/core/stack.h>

namespace torch_ltc {

/// Makes programs call PyTorch's CPU kernels: for the op table's rows with
/// lower = "host", and for sorts.
void registerHostCalls();

/// Computes an op into `outputs`, the program's memory; `arguments` are those
/// of the op's schema.
using HostKernel = void (*)(const torch::jit::Stack &arguments,
                            at::TensorList outputs);

/// Makes programs call `kernel` for `op` ("torch_ltc::collective"). Unlike
/// results of the op's CPU kernel, those of `kernel` aren't copied.
void setHostKernel(const std::string &op, HostKernel kernel);

/// Sets the function that `releaseAfterFailure` calls after a failed run, when
/// host kernels may still use the program's memory.
void setAfterFailure(void (*release)());
void releaseAfterFailure();

} // namespace torch_ltc

#endif // TORCH_LTC_PROGRAMS_HOST_CALLS_H
