//===- part_numbers.h - Ends of slices and pads -----------------*- C++ -*-===//
//
// The end of a slice and a pad follow from the length of the result, which has
// a slot of its own before them (number_slots.h).
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

private:
  const GraphSnapshot &base;
  const TraceColumns &columns;
  const std::vector<NumberSlot> &slots;
};

} // namespace torch_ltc

#endif // TORCH_LTC_GENERAL_PART_NUMBERS_H
