//===- op_call.h - One call of an op for shape inference --------*- C++ -*-===//

#ifndef TORCH_LTC_SHAPE_OP_CALL_H
#define TORCH_LTC_SHAPE_OP_CALL_H

#include "ir/hash.h"
#include "ir/op_record.h"

#include <ATen/core/ivalue.h>
#include <c10/util/SmallVector.h>
#include <torch/csrc/lazy/core/shape.h>

namespace torch_ltc {

/// One call of an op. Refers to the tracer's storage, so it is valid only
/// during the call.
struct OpCall {
  const OpRecord &record;
  /// The op's arguments from the dispatcher.
  c10::ArrayRef<c10::IValue> arguments;
  /// Shapes of the tensor operands, in order.
  c10::SmallVector<const torch::lazy::Shape *, 4> operands = {};
  /// The dtype to which torch promotes all tensor and number operands.
  c10::ScalarType promoted = c10::ScalarType::Undefined;
  /// Hash of the op and of all its arguments that aren't operands.
  Hash128 attributeHash = {};
};

} // namespace torch_ltc

#endif // TORCH_LTC_SHAPE_OP_CALL_H
