//===- slice_bounds.cpp - Constant sizes that bound slices ----------------===//

#include "general/slice_bounds.h"

#include <cstdlib>

using namespace torch_ltc;

namespace {

class BoundFinder {
public:
  BoundFinder(const GraphSnapshot &base, const TraceColumns &columns,
              c10::ArrayRef<NumberSlot> slots, Bounds mode)
      : base(base), columns(columns), slots(slots), mode(mode) {
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
    if (mode == Bounds::Operands)
      for (const NumberSlot &slot : slots)
        if (slot.kind == NumberSlot::Kind::Integer &&
            columns.integerVaries(slot.index))
          addSizesOfOperands(slot.node);
    return std::move(bounds);
  }

private:
  /// Adds the sizes that bound `part`, a slice of the node's first operand.
  void addBoundsOfPart(ResultRef part, const SnapshotNode &node) {
    ResultRef whole = base.operands[node.firstOperand];
    if (part.index != 0 || base.shape(part).dim() != base.shape(whole).dim())
      return;
    for (uint32_t d = 0; d < base.shape(part).dim(); ++d)
      if (columns.varies(columns.firstSize(part) + d))
        if (auto bound = parameterSizeOf(whole, d))
          addBound(*bound);
  }

  /// Adds the operands' sizes of those dimensions whose size varies in the
  /// result; of all dimensions if none varies.
  void addSizesOfOperands(uint32_t position) {
    const SnapshotNode &node = base.nodes[position];
    const uint32_t result = columns.firstSize(position);
    const int64_t rank = node.shapes[0].dim();
    for (uint32_t i = 0; i < node.numOperands; ++i) {
      ResultRef operand = base.operands[node.firstOperand + i];
      std::vector<uint32_t> all, varying;
      for (uint32_t d = 0; d < base.shape(operand).dim(); ++d) {
        all.push_back(d);
        if (d < rank && columns.varies(result + d))
          varying.push_back(d);
      }
      for (uint32_t d : varying.empty() ? all : varying)
        if (auto bound = parameterSizeOf(operand, d))
          addBound(*bound);
    }
  }

  /// Adds the parameters' sizes that equal a constant size to which a varying
  /// size is padded.
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

  /// Adds `size` and the sizes of the same dimension of parameters that have
  /// the same shape, such as an optimizer's states. In the modes `All` and
  /// `Operands`, also adds all equal sizes of parameters.
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
    if (mode < Bounds::All)
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

  /// Returns the parameter's size from which dimension `dim` of `ref` gets its
  /// size, or none if the size varies or comes from no parameter.
  std::optional<uint32_t> parameterSizeOf(ResultRef ref, uint32_t dim) const {
    for (;;) {
      const SnapshotNode &node = base.nodes[ref.position];
      uint32_t size = columns.firstSize(ref) + dim;
      if (columns.varies(size))
        return std::nullopt;
      if (!node.record)
        return size;
      if (!node.numOperands)
        return std::nullopt;
      ResultRef operand = base.operands[node.firstOperand];
      auto from = sameSize(base.shape(operand), base.shape(ref), dim);
      if (!from)
        return std::nullopt;
      ref = operand;
      dim = *from;
    }
  }

  /// Returns the operand's dimension that dimension `dim` of a result comes
  /// from, as far as the shapes show: the same one or, if the result is a view
  /// of a different shape, the nearest dimension of the same size, counted from
  /// the last dimension.
  static std::optional<uint32_t> sameSize(const torch::lazy::Shape &from,
                                          const torch::lazy::Shape &to,
                                          uint32_t dim) {
    if (from.dim() == to.dim() && from.size(dim) == to.size(dim))
      return dim;
    if (from.numel() != to.numel())
      return std::nullopt;
    const int64_t likely = int64_t(dim) + from.dim() - to.dim();
    std::optional<uint32_t> nearest;
    for (int64_t d = 0; d < from.dim(); ++d)
      if (from.size(d) == to.size(dim) &&
          (!nearest || std::abs(d - likely) < std::abs(*nearest - likely)))
        nearest = uint32_t(d);
    return nearest;
  }

  const GraphSnapshot &base;
  const TraceColumns &columns;
  c10::ArrayRef<NumberSlot> slots;
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
