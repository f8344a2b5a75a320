//===- eager_fallback.h - Ops that run eagerly on the CPU -------*- C++ -*-===//
//
// One sync for all lazy arguments, then the op's CPU kernel; its results are
// returned as lazy tensors. Every call is added to the fallback log.
//
//===----------------------------------------------------------------------===//

#ifndef TORCH_LTC_FALLBACK_EAGER_FALLBACK_H
#define TORCH_LTC_FALLBACK_EAGER_FALLBACK_H

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

#include <functional>
#include <string>

namespace torch_ltc {

/// Runs `op` on CPU copies of the lazy tensors in `stack`, and replaces its
/// arguments by its results. Written arguments are updated in place.
void runFallback(const c10::OperatorHandle &op, torch::jit::Stack &stack,
                 const std::string &reason);

/// The same with a custom function around the CPU kernel: `stack` has the CPU
/// tensors before, and the results after the call. A written tensor that is
/// passed as several arguments is passed as one CPU tensor.
using RunOnCpu = std::function<void(const c10::OperatorHandle &op,
                                    torch::jit::Stack &stack)>;
void runFallback(const c10::OperatorHandle &op, torch::jit::Stack &stack,
                 const std::string &reason, const RunOnCpu &runOnCpu);

/// The same for an op of the sparse keys: its arguments or its results are
/// sparse tensors.
void runSparseFallback(const c10::OperatorHandle &op, torch::jit::Stack &stack);

/// The same for quantized and nested tensors.
void runSharedFallback(const c10::OperatorHandle &op, torch::jit::Stack &stack);

/// Whether option force_fallback names the op ("aten::add.Tensor" or
/// "aten::add" for all its overloads).
bool isFallbackForced(const std::string &opName);
/// Whether it names any op.
bool isAnyFallbackForced();

} // namespace torch_ltc

#endif // TORCH_LTC_FALLBACK_EAGER_FALLBACK_H
