//===- part_numbers.cpp - Slices, pads and windows ------------------------===//

#include "general/part_numbers.h"

#include <algorithm>

using namespace torch_ltc;

/// Whether the length's expression is the length itself.
static bool isItself(const NumberSlot &length) {
  return std::ranges::any_of(length.value.product, [&](SizeTerm term) {
    return term == sizeTerm(length.index);
  });
}

static bool isSum(const Column &sum, const Column &a, const Column &b) {
  for (size_t i = 0; i < sum.size(); ++i)
    if (sum[i] != a[i] + b[i])
      return false;
  return true;
}

/// Returns the sum of two fitted slots, or none if a SizeExpression can't
/// represent it.
static std::optional<SizeExpression> sumOf(const NumberSlot &length,
                                           const NumberSlot &start) {
  SizeExpression sum = length.value;
  if (sum.addend || isItself(length))
    return std::nullopt;
  if (start.value.isConstant()) {
    sum.offset += start.value.offset;
    return sum;
  }
  if (sum.isConstant() || !start.value.isTerm())
    return std::nullopt;
  sum.addend = start.value.product[0];
  sum.sign = 1;
  return sum;
}

bool PartNumbers::isPadded(const NumberSlot &number) const {
  return base.nodes[number.node].record->shapeRule ==
         ShapeRule::constant_padShape;
}

std::optional<int64_t> PartNumbers::otherPad(const NumberSlot &length,
                                             const Column &pad) const {
  Column sizes =
      columns.sizes(columns.operandSize(base.nodes[length.node], length.place));
  Column lengths = numbersOf(columns, length);
  int64_t other = pad[0] - (lengths[0] - sizes[0]);
  for (size_t i = 1; i < pad.size(); ++i)
    if (pad[i] - (lengths[i] - sizes[i]) != other)
      return std::nullopt;
  return other;
}

std::optional<SizeExpression> PartNumbers::fitPad(const NumberSlot &number,
                                                  const Column &column) const {
  for (const NumberSlot &length : slots) {
    if (length.node != number.node ||
        length.kind != NumberSlot::Kind::ResultSize)
      continue;
    std::optional<int64_t> other = otherPad(length, column);
    SizeExpression pad = length.value;
    if (!other || pad.isConstant() || pad.addend || isItself(length))
      continue;
    pad.addend =
        sizeTerm(columns.operandSize(base.nodes[length.node], length.place));
    pad.sign = -1;
    pad.offset += *other;
    return pad;
  }
  return std::nullopt;
}

std::optional<SizeExpression> PartNumbers::fitEnd(const NumberSlot &number,
                                                  const Column &column) const {
  if (base.nodes[number.node].record->shapeRule != ShapeRule::sliceShape)
    return std::nullopt;
  auto ofNode =
      std::ranges::equal_range(slots, number.node, {}, &NumberSlot::node);
  for (const NumberSlot &length : ofNode)
    for (const NumberSlot &start : ofNode)
      if (length.kind == NumberSlot::Kind::ResultSize &&
          start.kind == number.kind && start.index < number.index)
        if (auto end = sumOf(length, start))
          if (isSum(column, numbersOf(columns, length),
                    numbersOf(columns, start)))
            return end;
  return std::nullopt;
}

bool PartNumbers::wordVaries(uint32_t node, size_t place) const {
  return std::ranges::any_of(slots, [&](const NumberSlot &slot) {
    return slot.node == node && slot.place == place &&
           slot.kind == NumberSlot::Kind::Integer &&
           columns.integerVaries(slot.index);
  });
}

std::optional<SizeExpression> PartNumbers::fitWindows(
    const NumberSlot &number, const Column &column,
    c10::ArrayRef<std::vector<SizeCandidate>> operands) const {
  const SnapshotNode &node = base.nodes[number.node];
  if (node.record->shapeRule != ShapeRule::as_stridedShape ||
      number.kind != NumberSlot::Kind::Integer ||
      !columns.integerVaries(number.index))
    return std::nullopt;
  const std::vector<Word> &words = node.attributes->words;
  auto size = findAttribute(*node.record, words, "size"),
       stride = findAttribute(*node.record, words, "stride");
  const auto firstSize = size_t(size->payload - words.data()),
             firstStride = size_t(stride->payload - words.data());
  if (number.place < firstSize || number.place >= firstSize + size->count)
    return std::nullopt;
  const size_t dim = number.place - firstSize;
  const int64_t distance = stride->payload[dim];
  if (distance < 1 || wordVaries(number.node, firstStride + dim))
    return std::nullopt;
  for (size_t d = 0; d < size->count; ++d) {
    if (d == dim || wordVaries(number.node, firstSize + d) ||
        wordVaries(number.node, firstStride + d))
      continue;
    const int64_t window = (size->payload[d] - 1) * stride->payload[d] + 1;
    for (const SizeCandidate &row : operands[0]) {
      bool holds = true;
      for (size_t i = 0; i < column.size(); ++i)
        holds &= row.values[i] >= window &&
                 (row.values[i] - window) / distance + 1 == column[i];
      if (!holds)
        continue;
      SizeExpression windows = SizeExpression::of(row.term);
      windows.summand = -window;
      windows.divisor = distance;
      windows.offset = 1;
      return windows;
    }
  }
  return std::nullopt;
}
