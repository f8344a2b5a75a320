//===- other_ops.h - Facts about ops without a row --------------*- C++ -*-===//
//
// The op table describes the ops that are traced. The device also has to treat
// some of PyTorch's other ops in a special way, which follows neither from a
// row nor from the op's schema. `other_ops.cpp` lists these ops.
//
//===----------------------------------------------------------------------===//

#ifndef TORCH_LTC_IR_OTHER_OPS_H
#define TORCH_LTC_IR_OTHER_OPS_H

#include <cstdint>
#include <string_view>

namespace torch_ltc {

enum class OpFact : uint8_t {
  /// torch's CompositeExplicitAutograd kernel may run on the device, because it
  /// only calls functional ops and views. The op runs as the ops that it calls;
  /// all other ops with such a kernel get the fallback.
  IsComposed,
  /// The op makes a nested tensor, which functionalization can't wrap, from
  /// dense operands.
  MakesNested,
  /// The op applies another op to each element of its lists.
  RepeatsOp,
};

/// Whether the table lists the op ("aten::_unsafe_index.Tensor") with the fact.
bool holds(OpFact fact, std::string_view op);

} // namespace torch_ltc

#endif // TORCH_LTC_IR_OTHER_OPS_H
