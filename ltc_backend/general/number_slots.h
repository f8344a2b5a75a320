//===- number_slots.h - The numbers that may differ -------------*- C++ -*-===//

#ifndef TORCH_LTC_GENERAL_NUMBER_SLOTS_H
#define TORCH_LTC_GENERAL_NUMBER_SLOTS_H

#include "general/general_graph.h"
#include "general/trace_columns.h"

namespace torch_ltc {

struct NumberSlots {
  std::vector<NumberSlot> slots; // in the order of nodes
  /// Whether a varying size is padded to a length that is the same in all
  /// traces. Such a length has a slot, because it may have to be a multiple of
  /// some number.
  bool hasPaddedLengths = false;
};

/// Returns the slots of a graph: sizes of parameters, integers of arguments,
/// and sizes that no shape rule can derive. Their values aren't set.
///
/// The varying length of a slice has a slot before those of the slice's start
/// and end. If start and end don't follow from other sizes, start and length
/// become symbols. If start and end were the symbols, the length would be their
/// difference, and small at their stand-ins.
///
/// `withPaddedLengths`: whether lengths that are the same in all traces, and to
/// which varying sizes are padded, have slots. `withInferredSizes`: whether
/// sizes that a view infers have slots: for `view(a, b, -1)`, the operand's
/// size can then be the product of the three sizes.
NumberSlots findNumberSlots(const GraphSnapshot &base,
                            const TraceColumns &columns, bool withPaddedLengths,
                            bool withInferredSizes);

/// The slot's number in each trace.
Column numbersOf(const TraceColumns &columns, const NumberSlot &slot);

/// Whether the slot is a size that a view infers.
bool isInferredSize(const GraphSnapshot &base, const NumberSlot &slot);

} // namespace torch_ltc

#endif // TORCH_LTC_GENERAL_NUMBER_SLOTS_H
