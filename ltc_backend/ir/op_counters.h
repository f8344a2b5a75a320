//===- op_counters.h - torch._lazy.metrics' counters of ops -----*- C++ -*-===//
//
// Counts ops under the names that LazyTensorCore's backends use, for programs
// that read `torch._lazy.metrics`: "lazy::add" for a traced op,
// "aten::sub.Tensor" for one that ran eagerly,
// "IrNodeReused_torch::lazy::AddTensor" for a node that was reused from an
// earlier trace.
//
//===----------------------------------------------------------------------===//

#ifndef TORCH_LTC_IR_OP_COUNTERS_H
#define TORCH_LTC_IR_OP_COUNTERS_H

#include "ir/op_record.h"

namespace torch_ltc {

void countTracedOp(const OpRecord &record, bool isReused);
/// `name`: the op's full name, such as "aten::sub.Tensor".
void countEagerOp(const std::string &name);

} // namespace torch_ltc

#endif // TORCH_LTC_IR_OP_COUNTERS_H
