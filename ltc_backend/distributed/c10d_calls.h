//===- c10d_calls.h - Calls of torch.distributed's ops ----------*- C++ -*-===//

#ifndef TORCH_LTC_DISTRIBUTED_C10D_CALLS_H
#define TORCH_LTC_DISTRIBUTED_C10D_CALLS_H

#include "distributed/traced_collective.h"

#include <ATen/core/ivalue.h>

#include <optional>

namespace torch_ltc {

/// A part of a call: one collective, and the user's tensors that are
/// concatenated in its output.
struct CallPart {
  Collective collective;
  std::vector<at::Tensor> outputs;
};

struct C10dCall {
  std::vector<CallPart> parts;
  bool isAsync = true;
};

/// Divides a call of the op `name`, such as "c10d::allreduce_", into
/// collectives. Returns nullopt for arguments that can't be traced, which
/// eager's kernel supports or rejects with its own message.
std::optional<C10dCall> readCall(const std::string &name,
                                 c10::ArrayRef<c10::IValue> arguments);

} // namespace torch_ltc

#endif // TORCH_LTC_DISTRIBUTED_C10D_CALLS_H
