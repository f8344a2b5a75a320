//===- number_slots.cpp - The numbers that may differ ---------------------===//

#include "general/number_slots.h"

using namespace torch_ltc;

namespace {

class SlotFinder {
public:
  SlotFinder(const GraphSnapshot &base, const TraceColumns &columns,
             bool withPaddedLengths, bool withInferredSizes)
      : base(base), columns(columns), withPaddedLengths(withPaddedLengths),
        withInferredSizes(withInferredSizes) {}

  NumberSlots run() {
    std::vector<bool> isKnown(base.parameters.size(), false);
    for (uint32_t i = 0; i < base.nodes.size(); ++i) {
      const SnapshotNode &node = base.nodes[i];
      bool isParameter = !node.record && !isKnown[node.parameter];
      if (isParameter)
        isKnown[node.parameter] = true;
      if (node.record) {
        addLengths(i);
        addIntegers(i);
      }
      if (isParameter || (node.record && hasSizesFromScalars(node)))
        addSizes(i);
    }
    return std::move(found);
  }

private:
  void addLengths(uint32_t position) {
    const SnapshotNode &node = base.nodes[position];
    switch (node.record->shapeRule) {
    case ShapeRule::sliceShape:
    case ShapeRule::constant_padShape:
      if (!hasSizesFromScalars(node))
        addPartLengths(position);
      break;
    case ShapeRule::viewShape:
      if (withInferredSizes)
        addInferredSize(position);
      break;
    default:
      break;
    }
  }

  /// Adds the lengths of a slice or a pad.
  void addPartLengths(uint32_t position) {
    const SnapshotNode &node = base.nodes[position];
    const bool isPad = node.record->shapeRule == ShapeRule::constant_padShape;
    const uint32_t size = columns.firstSize(position);
    for (uint32_t d = 0; d < node.shapes[0].dim(); ++d) {
      bool isPaddedLength = isPad && withPaddedLengths &&
                            !columns.varies(size + d) &&
                            columns.varies(columns.operandSize(node, d));
      found.hasPaddedLengths |= isPaddedLength;
      if (isPaddedLength || columns.varies(size + d))
        addResultSize(position, /*result=*/0, d);
    }
  }

  void addInferredSize(uint32_t position) {
    AttributeReader reader(base.nodes[position].attributes->words);
    while (!reader.atEnd()) {
      Attribute attribute = reader.next();
      if (attribute.tag != Tag::integers)
        continue;
      c10::ArrayRef<int64_t> sizes = attribute.integers();
      for (uint32_t d = 0; d < sizes.size(); ++d)
        if (sizes[d] == -1 && columns.varies(columns.firstSize(position) + d))
          addResultSize(position, /*result=*/0, d);
    }
  }

  void addIntegers(uint32_t position) {
    const SnapshotNode &node = base.nodes[position];
    forEachFollowingWord(*node.record, node.attributes->words,
                         [&](const ArgumentSpec &spec, size_t place) {
                           found.slots.push_back(
                               {.kind = NumberSlot::Kind::Integer,
                                .node = position,
                                .index = nextInteger++,
                                .place = uint32_t(place),
                                .lowest = spec.lowest});
                         });
  }

  void addSizes(uint32_t position) {
    const SnapshotNode &node = base.nodes[position];
    for (uint32_t k = 0; k < node.shapes.size(); ++k)
      for (uint32_t d = 0; d < node.shapes[k].dim(); ++d)
        if (node.shapes[k].size(d) > 1)
          addResultSize(position, k, d);
  }

  void addResultSize(uint32_t position, uint32_t result, uint32_t dim) {
    found.slots.push_back(
        {.kind = base.nodes[position].record ? NumberSlot::Kind::ResultSize
                                             : NumberSlot::Kind::ParameterSize,
         .node = position,
         .index =
             columns.firstSize({.position = position, .index = result}) + dim,
         .result = result,
         .place = dim});
  }

  const GraphSnapshot &base;
  const TraceColumns &columns;
  const bool withPaddedLengths, withInferredSizes;
  uint32_t nextInteger = 0;
  NumberSlots found;
};

} // namespace

NumberSlots torch_ltc::findNumberSlots(const GraphSnapshot &base,
                                       const TraceColumns &columns,
                                       bool withPaddedLengths,
                                       bool withInferredSizes) {
  return SlotFinder(base, columns, withPaddedLengths, withInferredSizes).run();
}

Column torch_ltc::numbersOf(const TraceColumns &columns,
                            const NumberSlot &slot) {
  return slot.kind == NumberSlot::Kind::Integer ? columns.integers(slot.index)
                                                : columns.sizes(slot.index);
}

bool torch_ltc::isInferredSize(const GraphSnapshot &base,
                               const NumberSlot &slot) {
  return slot.kind == NumberSlot::Kind::ResultSize &&
         base.nodes[slot.node].record->shapeRule == ShapeRule::viewShape;
}
