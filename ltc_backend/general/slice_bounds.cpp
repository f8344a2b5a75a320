//===- slice_bounds.cpp - Constant sizes that bound slices ----------------===//

#include "general/slice_bounds.h"

using namespace torch_ltc;

namespace {

class BoundFinder {
public:
  BoundFinder(const GraphSnapshot &base, const TraceColumns &columns,
              c10::ArrayRef<NumberSlot> slots, Bounds mode)
      : base(base), columns(columns), mode(mode) {
    for (const NumberSlot &slot : slots)
      if (slot.kind == NumberSlot::Kind::ParameterSize)
        parameterSizes.push_back(&slot);
  }

  std::set<uint32_t> run() {
    for (uint32_t i = 0; i < base.nodes.size(); ++i) {
      const SnapshotNode &node = base.nodes[i];
      if (!node.record)
        continue;
      addPaddedSizes(i);
      if (node.record->shapeRule == ShapeRule::sliceShape)
        addBoundsOfPart({.position = i, .index = 0}, node);
      else if (node.record->shapeRule == ShapeRule::slice_scatterShape)
        addBoundsOfPart(base.operands[node.firstOperand + 1], node);
    }
    return std::move(bounds);
  }

private:
  /// `part` is a slice of the node's first operand.
  void addBoundsOfPart(ResultRef part, const SnapshotNode &node) {
    ResultRef whole = base.operands[node.firstOperand];
    if (part.index != 0 || base.shape(part).dim() != base.shape(whole).dim())
      return;
    for (uint32_t d = 0; d < base.shape(part).dim(); ++d)
      if (columns.varies(columns.firstSize(part) + d))
        if (auto bound = parameterSizeOf(whole, d))
          addBound(*bound);
  }

  /// A constant size to which a varying one is padded is that of a parameter.
  void addPaddedSizes(uint32_t position) {
    const SnapshotNode &node = base.nodes[position];
    if (!node.numOperands || node.record->name != "aten::constant_pad_nd")
      return;
    ResultRef operand = base.operands[node.firstOperand];
    for (uint32_t d = 0; d < node.shapes[0].dim(); ++d) {
      if (columns.varies(columns.firstSize(position) + d) ||
          operand.index != 0 || !columns.varies(columns.firstSize(operand) + d))
        continue;
      for (const NumberSlot *slot : parameterSizes)
        if (!columns.varies(slot->index) && !isStatic(*slot) &&
            sizeOf(*slot) == node.shapes[0].size(d))
          bounds.insert(slot->index);
    }
  }

  /// Adds the size, and the same dimension of parameters of the same shape: an
  /// optimizer's states.
  void addBound(uint32_t size) {
    const NumberSlot *bound = nullptr;
    for (const NumberSlot *slot : parameterSizes)
      if (slot->index == size)
        bound = slot;
    if (!bound || isStatic(*bound) || !bounds.insert(size).second)
      return;
    c10::ArrayRef<int64_t> shape = base.nodes[bound->node].shapes[0].sizes();
    for (const NumberSlot *slot : parameterSizes)
      if (slot->place == bound->place && !isStatic(*slot) &&
          base.nodes[slot->node].shapes[0].sizes() == shape)
        bounds.insert(slot->index);
    if (mode != Bounds::All)
      return;
    for (const NumberSlot *slot : parameterSizes)
      if (!isStatic(*slot) && !columns.varies(slot->index) &&
          sizeOf(*slot) == sizeOf(*bound))
        bounds.insert(slot->index);
  }

  int64_t sizeOf(const NumberSlot &slot) const {
    return columns.sizes(slot.index).front();
  }

  /// Whether the user has marked the parameter's size as static.
  bool isStatic(const NumberSlot &slot) const {
    return isMarkedStatic(
        base.parameters[base.nodes[slot.node].parameter].marks, slot.place);
  }

  /// The parameter's size from which this constant size of a value comes.
  std::optional<uint32_t> parameterSizeOf(ResultRef ref, uint32_t dim) const {
    for (;;) {
      const SnapshotNode &node = base.nodes[ref.position];
      const torch::lazy::Shape &shape = base.shape(ref);
      uint32_t size = columns.firstSize(ref) + dim;
      if (columns.varies(size))
        return std::nullopt;
      if (!node.record)
        return size;
      if (!node.numOperands)
        return std::nullopt;
      ResultRef operand = base.operands[node.firstOperand];
      const torch::lazy::Shape &from = base.shape(operand);
      if (from.dim() != shape.dim() || from.size(dim) != shape.size(dim))
        return std::nullopt;
      ref = operand;
    }
  }

  const GraphSnapshot &base;
  const TraceColumns &columns;
  Bounds mode;
  std::vector<const NumberSlot *> parameterSizes;
  std::set<uint32_t> bounds;
};

} // namespace

std::set<uint32_t> torch_ltc::findSliceBounds(const GraphSnapshot &base,
                                              const TraceColumns &columns,
                                              c10::ArrayRef<NumberSlot> slots,
                                              Bounds bounds) {
  if (bounds == Bounds::Constant)
    return {};
  return BoundFinder(base, columns, slots, bounds).run();
}
