//===- kind_of_call.h - Kinds of calls of a formula -------------*- C++ -*-===//

#ifndef TORCH_LTC_TRACING_KIND_OF_CALL_H
#define TORCH_LTC_TRACING_KIND_OF_CALL_H

#include "ir/hash.h"

#include <ATen/core/ivalue.h>
#include <optional>

namespace c10 {
class OperatorHandle;
}

namespace torch_ltc {

/// Hashes everything on which a formula in Python may depend in a call of `op`,
/// except values of tensors: sizes, strides, dtypes, numbers, options. For
/// equal hashes, the formula calls the same ops. Returns nullopt if it may
/// depend on something else.
std::optional<Hash128> hashKindOfCall(const c10::OperatorHandle &op,
                                      c10::ArrayRef<c10::IValue> arguments);

} // namespace torch_ltc

#endif // TORCH_LTC_TRACING_KIND_OF_CALL_H
