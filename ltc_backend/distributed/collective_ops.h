//===- collective_ops.h - Collectives as ops of programs --------*- C++ -*-===//
//
//   collective(order, input, ...)       -> order', output
//   collective_start(order, input, ...) -> order'
//   collective_wait(order, order', ...) -> output of the started collective
//
// A compiled program (pass OverlapCollectives) begins and finishes collectives
// in its own memory:
//
//   collective_begin(order, input, ...)        -> order', unfinished output
//   collective_finish(order', input?, output)  -> output
//
// `order`, the number of the last collective, represents side effects in a
// graph of values: each collective reads and updates it. So the collectives of
// a thread form a chain, whose end every step computes. No tier drops a
// collective, merges it with an equal one or reorders it. A collective whose
// number has been used before isn't run again. The number's high bits are the
// number of the chain.
//
//===----------------------------------------------------------------------===//

#ifndef TORCH_LTC_DISTRIBUTED_COLLECTIVE_OPS_H
#define TORCH_LTC_DISTRIBUTED_COLLECTIVE_OPS_H

#include <ATen/core/Tensor.h>

namespace torch_ltc {

/// The number of the last collective of the chain that has been started; if
/// there is none, the number before the chain's first collective.
int64_t lastCollective(int64_t chain);

/// Returns the rank that sent the message of the `receive_any` with this
/// number; -1 if it isn't known.
int sourceOfCollective(int64_t number);

/// Makes programs run collectives directly in the memory of their results.
void registerHostCollective();

} // namespace torch_ltc

#endif // TORCH_LTC_DISTRIBUTED_COLLECTIVE_OPS_H
