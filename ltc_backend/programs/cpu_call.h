//===- cpu_call.h - The CPU kernels that compute traced ops -----*- C++ -*-===//

#ifndef TORCH_LTC_PROGRAMS_CPU_CALL_H
#define TORCH_LTC_PROGRAMS_CPU_CALL_H

#include "ir/op_record.h"

#include <optional>

namespace torch_ltc {

/// How PyTorch's CPU kernels compute an op; the same for all arguments.
struct CpuCall {
  /// The op to call: a view op if the traced op copies a view.
  c10::OperatorHandle op;
  /// The same op with an argument `out` for each result, if it has a kernel.
  std::optional<c10::OperatorHandle> outOp = {};
  /// For ops that replace a part of their first operand: the op that views that
  /// part.
  std::optional<c10::OperatorHandle> writtenView = {};
  /// Whether the op reads its operand's memory instead of its elements.
  bool readsMemory = false;
};

/// The call for a traced op. It is looked up by name, once for each op.
const CpuCall &cpuCallOf(const OpRecord &record);

} // namespace torch_ltc

#endif // TORCH_LTC_PROGRAMS_CPU_CALL_H
