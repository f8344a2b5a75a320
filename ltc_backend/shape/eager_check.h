//===- eager_check.h - Whether eager takes a call ---------------*- C++ -*-===//
//
// PyTorch's kernels check their arguments, each in its own words, and more of
// them than rules and Meta kernels do: dtypes above all. So a small call of a
// kind that is new is made once with eager's kernel as well, on stand-ins of
// the operands' sizes and dtypes. A new kind means a new program, whose
// compilation takes a thousand times as long.
//
//===----------------------------------------------------------------------===//

#ifndef TORCH_LTC_SHAPE_EAGER_CHECK_H
#define TORCH_LTC_SHAPE_EAGER_CHECK_H

#include "shape/op_call.h"
#include "shape/shape_inference.h"

namespace torch_ltc {

/// Throws if eager's kernel refuses the call or has results of other sizes or
/// dtypes than `results`. What it refuses may be the values of the stand-ins:
/// the caller runs the op eagerly, which finds out.
void checkAgainstEager(const OpCall &call, c10::ArrayRef<ResultShape> results);

} // namespace torch_ltc

#endif // TORCH_LTC_SHAPE_EAGER_CHECK_H
