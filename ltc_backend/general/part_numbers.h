//===- part_numbers.h - Slices, pads and windows ----------------*- C++ -*-===//
//
// The end of a slice and a pad follow from the length of the result, which has
// a slot of its own before them (number_slots.h). The number of windows that
// `stft` reads by `as_strided` follows from the length of a row.
//
//===----------------------------------------------------------------------===//

#ifndef TORCH_LTC_GENERAL_PART_NUMBERS_H
#define TORCH_LTC_GENERAL_PART_NUMBERS_H

#include "general/number_slots.h"

namespace torch_ltc {

/// Expresses the integers of slices and pads by lengths. Doesn't own the graph,
/// the columns and the slots; the slots before a fitted one have values.
class PartNumbers {
public:
  PartNumbers(const GraphSnapshot &base, const TraceColumns &columns,
              const std::vector<NumberSlot> &slots)
      : base(base), columns(columns), slots(slots) {}

  /// Whether the number belongs to a padding.
  bool isPadded(const NumberSlot &number) const;
  /// Returns the negated pad at the other end of the dimension of `length`, if
  /// that pad is the same in all traces. `pad`: the pad at one end.
  std::optional<int64_t> otherPad(const NumberSlot &length,
                                  const Column &pad) const;
  /// Expresses a pad as the padded length minus the operand's length minus the
  /// pad at the other end.
  std::optional<SizeExpression> fitPad(const NumberSlot &number,
                                       const Column &column) const;
  /// Expresses the end of a slice as its length plus its start. The size of the
  /// result isn't known when the arguments are computed, but the terms of its
  /// expression are.
  std::optional<SizeExpression> fitEnd(const NumberSlot &number,
                                       const Column &column) const;
  /// Expresses the number of windows that an `as_strided` reads from a row of
  /// its operand: (row - window) / distance + 1. `operands`: the varying sizes
  /// of the operands.
  std::optional<SizeExpression>
  fitWindows(const NumberSlot &number, const Column &column,
             c10::ArrayRef<std::vector<SizeCandidate>> operands) const;

private:
  /// Whether the node's word at `place` differs between traces.
  bool wordVaries(uint32_t node, size_t place) const;

  const GraphSnapshot &base;
  const TraceColumns &columns;
  const std::vector<NumberSlot> &slots;
};

} // namespace torch_ltc

#endif // TORCH_LTC_GENERAL_PART_NUMBERS_H
