//===- unchecked_operands.h - Operands that eager doesn't check -*- C++ -*-===//

#ifndef TORCH_LTC_FALLBACK_UNCHECKED_OPERANDS_H
#define TORCH_LTC_FALLBACK_UNCHECKED_OPERANDS_H

#include <ATen/core/dispatch/Dispatcher.h>

namespace torch_ltc {

/// Raises an error if an argument violates an assumption that PyTorch's CPU
/// kernel (torch 2.13) doesn't check: the kernel would read out of bounds. The
/// arguments of `op` are the last elements of `stack`.
void checkUncheckedOperands(const c10::OperatorHandle &op,
                            const torch::jit::Stack &stack);

} // namespace torch_ltc

#endif // TORCH_LTC_FALLBACK_UNCHECKED_OPERANDS_H
