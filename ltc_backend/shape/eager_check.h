//===- eager_check.h - Checks of calls with eager's kernels -----*- C++ -*-===//
//
// PyTorch's kernels check their arguments, each with its own messages, and
// check more than the shape rules and Meta kernels do, above all dtypes. So the
// first small call of each kind is also made with eager's kernel, on stand-ins
// with the operands' sizes and dtypes. Most ops only compare sizes with each
// other and with 0 and 1. Calls of such an op with the same pattern of equal
// sizes are of the same kind, so a loop whose sizes vary doesn't compute
// everything twice. For the other ops, the first large call of each kind is
// made with small sizes, and only rejected dtypes and dims count.
//
//===----------------------------------------------------------------------===//

#ifndef TORCH_LTC_SHAPE_EAGER_CHECK_H
#define TORCH_LTC_SHAPE_EAGER_CHECK_H

#include "shape/op_call.h"
#include "shape/shape_inference.h"

namespace torch_ltc {

/// Throws if eager's kernel rejects the stand-ins, or returns dtypes (for a
/// small call, also sizes) that differ from `results`. A rejection may be due
/// to the stand-ins' values, so the caller then runs the op eagerly with the
/// operands' values.
void checkAgainstEager(const OpCall &call, c10::ArrayRef<ResultShape> results);

/// Throws eager's error if the number that the op writes to elements is out of
/// the range of `dtype`.
void checkElementNumber(const OpRecord &record,
                        c10::ArrayRef<c10::IValue> arguments,
                        c10::ScalarType dtype);

} // namespace torch_ltc

#endif // TORCH_LTC_SHAPE_EAGER_CHECK_H
