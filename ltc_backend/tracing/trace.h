//===- trace.h - Tracing of an op of the op table ---------------*- C++ -*-===//

#ifndef TORCH_LTC_TRACING_TRACE_H
#define TORCH_LTC_TRACING_TRACE_H

#include "ir/node.h"

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include <vector>

namespace torch_ltc {

/// Traces a call of `record` with `arguments` in schema order. Returns lazy
/// tensors without functional wrappers; a result is undefined if the op leaves
/// it undefined. Ops that can't be traced with these arguments run eagerly.
std::vector<at::Tensor> traceOp(const OpRecord &record,
                                c10::ArrayRef<c10::IValue> arguments);

/// Traces a call of `record`, the copying op of a view, if that is possible
/// with these arguments. Otherwise does nothing and returns an undefined
/// tensor.
at::Tensor traceView(const OpRecord &record,
                     c10::ArrayRef<c10::IValue> arguments);

/// Traces a call of the op `name` ("aten::add.Tensor"), which has one result.
at::Tensor traceOp(const std::string &name,
                   std::initializer_list<c10::IValue> arguments);

/// Notes that functionalization is about to call the functional op of `record`
/// for an in-place op, whose result keeps the strides of the first argument.
void noteInPlace(const OpRecord &record);

/// Notes that `result`, a lazy tensor without wrapper, is about to become the
/// new value of the tensor that was the first operand of its op.
void markInPlace(const at::Tensor &result);

} // namespace torch_ltc

#endif // TORCH_LTC_TRACING_TRACE_H
