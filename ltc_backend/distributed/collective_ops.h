//===- collective_ops.h - Collectives as ops of programs --------*- C++ -*-===//
//
//   collective(order, input, ...)       -> order', output
//   collective_start(order, input, ...) -> order'
//   collective_wait(order, order', ...) -> output of what order' started
//
// `order` is what makes them effects in a graph of values: the number of the
// collectives so far, which each one reads and makes anew. So they are a chain,
// whose end every step computes: none is dropped, merged with an equal one, or
// moved across another, whichever tier runs the program. A collective whose
// number has been given already isn't run again.
//
//===----------------------------------------------------------------------===//

#ifndef TORCH_LTC_DISTRIBUTED_COLLECTIVE_OPS_H
#define TORCH_LTC_DISTRIBUTED_COLLECTIVE_OPS_H

#include <ATen/core/Tensor.h>

namespace torch_ltc {

/// The number of the last collective of this process that was begun.
int64_t lastCollective();

/// The rank that a `receive_any` received from.
int sourceOfCollective(int64_t number);

/// Lets programs call `collective` with its results' memory.
void registerHostCollective();

} // namespace torch_ltc

#endif // TORCH_LTC_DISTRIBUTED_COLLECTIVE_OPS_H
