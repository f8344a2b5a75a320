//===- eager_fallback.h - Ops that run eagerly on the CPU -------*- C++ -*-===//
//
// A fallback waits once for all lazy arguments, runs the op's CPU kernel and
// returns the results as lazy tensors. Every call is added to the fallback log.
//
//===----------------------------------------------------------------------===//

#ifndef TORCH_LTC_FALLBACK_EAGER_FALLBACK_H
#define TORCH_LTC_FALLBACK_EAGER_FALLBACK_H

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

#include <functional>
#include <string>

namespace torch_ltc {

/// Runs `op` on CPU tensors with the values of the lazy tensors in `stack`, and
/// replaces the arguments by the results. Written arguments are updated in
/// place. `reason`: why the op runs by fallback, for the log.
void runFallback(const c10::OperatorHandle &op, torch::jit::Stack &stack,
                 const std::string &reason);

/// Calls the CPU kernel: `stack` has CPU tensors before the call, and the
/// results after it. If a written tensor is passed as several arguments, these
/// are one CPU tensor.
using RunOnCpu = std::function<void(const c10::OperatorHandle &op,
                                    torch::jit::Stack &stack)>;
/// Like the overload above, but calls the CPU kernel with `runOnCpu`.
void runFallback(const c10::OperatorHandle &op, torch::jit::Stack &stack,
                 const std::string &reason, const RunOnCpu &runOnCpu);

/// Runs an op whose arguments or results are sparse tensors by fallback. Called
/// at the sparse dispatch keys.
void runSparseFallback(const c10::OperatorHandle &op, torch::jit::Stack &stack);

/// Runs an op on quantized or nested tensors by fallback.
void runSharedFallback(const c10::OperatorHandle &op, torch::jit::Stack &stack);

/// Whether option force_fallback names the op ("aten::add.Tensor" or
/// "aten::add" for all its overloads).
bool isFallbackForced(const std::string &opName);

/// Returns why calls of the op run eagerly whatever their arguments are: an
/// option forces it, or the selected backend doesn't support the op, which is
/// emitted as `emitName`. Returns null if neither is the case.
const char *reasonForFallback(const std::string &opName, const char *emitName);
/// Whether option force_fallback names any op.
bool isAnyFallbackForced();

} // namespace torch_ltc

#endif // TORCH_LTC_FALLBACK_EAGER_FALLBACK_H
