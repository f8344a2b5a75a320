//===- op_counters.h - torch._lazy.metrics' counters of ops -----*- C++ -*-===//
//
// The names under which backends of LazyTensorCore count, for programs that
// read `torch._lazy.metrics`: "lazy::add" for a traced op, "aten::sub.Tensor"
// for one that ran eagerly, "IrNodeReused_torch::lazy::AddTensor" for a node
// that was reused from an earlier trace.
//
//===----------------------------------------------------------------------===//

#ifndef TORCH_LTC_IR_OP_COUNTERS_H
#define TORCH_LTC_IR_OP_COUNTERS_H

#include "ir/op_record.h"

namespace torch_ltc {

void countTracedOp(const OpRecord &record, bool isReused);
/// `name` is "aten::sub.Tensor".
void countEagerOp(const std::string &name);

} // namespace torch_ltc

#endif // TORCH_LTC_IR_OP_COUNTERS_H
