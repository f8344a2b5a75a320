//===- slice_bounds.cpp - Constant sizes that bound slices ----------------===//

#include "general/slice_bounds.h"

#include <cstdlib>
#include <tuple>

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

  SliceBounds run() {
    for (uint32_t i = 0; i < base.nodes.size(); ++i) {
      const SnapshotNode &node = base.nodes[i];
      if (!node.record)
        continue;
      addPaddedSizes(i);
      if (node.record->shapeRule == ShapeRule::sliceShape)
        addBoundsOfPart({.position = i, .index = 0}, node);
      else if (node.record->shapeRule == ShapeRule::slice_scatterShape)
        addBoundsOfPart(base.operands[node.firstOperand + 1], node);
      else if (node.record->shapeRule == ShapeRule::slice_backwardShape ||
               node.record->shapeRule == ShapeRule::unfold_backwardShape)
        addBoundsOfGradient(i);
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
        addBoundOf(whole, d);
  }

  /// Adds the sizes of a `slice_backward` or `unfold_backward` that bound its
  /// operand, the gradient of a slice or of windows: the integers of the
  /// argument `input_sizes`, and the sizes of the parameters that have the same
  /// shape.
  void addBoundsOfGradient(uint32_t position) {
    const SnapshotNode &node = base.nodes[position];
    const torch::lazy::Shape &whole = node.shapes[0];
    for (uint32_t d = 0; d < whole.dim(); ++d) {
      if (columns.varies(columns.firstSize(position) + d) ||
          !columns.varies(columns.operandSize(node, d)))
        continue;
      addIntegerBound(position, d);
      for (const NumberSlot *slot : parameterSizes)
        if (slot->place == d &&
            base.nodes[slot->node].shapes[0].sizes() == whole.sizes())
          addBound(slot->index);
    }
  }

  /// Adds the integer at place `dim` of the node's list of sizes.
  void addIntegerBound(uint32_t position, uint32_t dim) {
    AttributeReader reader(base.nodes[position].attributes->words);
    while (!reader.atEnd()) {
      Attribute attribute = reader.next();
      if (attribute.tag != Tag::integers)
        continue;
      const int64_t size = base.nodes[position].shapes[0].size(dim);
      const Word *words = base.nodes[position].attributes->words.data();
      const size_t place = attribute.payload - words + dim;
      for (const NumberSlot &slot : slots)
        if (slot.node == position && slot.kind == NumberSlot::Kind::Integer &&
            slot.place == place && !columns.integerVaries(slot.index) &&
            attribute.payload[dim] == size &&
            bounds.integers.insert(slot.index).second)
          addEqualSizes(size);
      return;
    }
  }

  /// Adds the operands' sizes in those dimensions whose size varies in the
  /// result or in an operand of the same rank, or in all dimensions if none
  /// varies.
  void addSizesOfOperands(uint32_t position) {
    const SnapshotNode &node = base.nodes[position];
    const uint32_t rank = uint32_t(node.shapes[0].dim());
    auto operands = c10::ArrayRef<ResultRef>(base.operands)
                        .slice(node.firstOperand, node.numOperands);
    std::set<uint32_t> varying;
    auto addVarying = [&](uint32_t firstSize) {
      for (uint32_t d = 0; d < rank; ++d)
        if (columns.varies(firstSize + d))
          varying.insert(d);
    };
    addVarying(columns.firstSize(position));
    for (ResultRef operand : operands)
      if (base.shape(operand).dim() == rank)
        addVarying(columns.firstSize(operand));
    for (ResultRef operand : operands)
      for (uint32_t d = 0; d < base.shape(operand).dim(); ++d)
        if (varying.empty() || varying.contains(d))
          addBoundOf(operand, d);
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
          bounds.sizes.insert(slot->index);
    }
  }

  /// Adds `size`, and the size of the same dimension of each parameter with the
  /// same shape (for example, an optimizer's state).
  void addBound(uint32_t size) {
    const NumberSlot *bound = nullptr;
    for (const NumberSlot *slot : parameterSizes)
      if (slot->index == size)
        bound = slot;
    if (!bound || columns.varies(size) || isStatic(*bound) ||
        !bounds.sizes.insert(size).second)
      return;
    c10::ArrayRef<int64_t> shape = base.nodes[bound->node].shapes[0].sizes();
    for (const NumberSlot *slot : parameterSizes)
      if (slot->place == bound->place && !isStatic(*slot) &&
          base.nodes[slot->node].shapes[0].sizes() == shape)
        bounds.sizes.insert(slot->index);
    addEqualSizes(sizeOf(*bound));
  }

  /// In the modes `All` and `Operands`, adds all sizes of parameters that equal
  /// the bound `size`.
  void addEqualSizes(int64_t size) {
    if (mode < Bounds::All)
      return;
    for (const NumberSlot *slot : parameterSizes)
      if (!isStatic(*slot) && !columns.varies(slot->index) &&
          sizeOf(*slot) == size)
        bounds.sizes.insert(slot->index);
  }

  int64_t sizeOf(const NumberSlot &slot) const {
    return columns.sizes(slot.index).front();
  }

  /// Whether the user has marked the parameter's size as static.
  bool isStatic(const NumberSlot &slot) const {
    return isMarkedStatic(
        base.parameters[base.nodes[slot.node].parameter].marks, slot.place);
  }

  /// Adds the parameter's size or the integer from which dimension `dim` of
  /// `ref` gets its size, unless the size varies.
  void addBoundOf(ResultRef ref, uint32_t dim) {
    for (;;) {
      const SnapshotNode &node = base.nodes[ref.position];
      uint32_t size = columns.firstSize(ref) + dim;
      if (columns.varies(size))
        return;
      if (!node.record)
        return addBound(size);
      auto source = sourceOf(ref, dim);
      if (!source) {
        if (ref.index == 0)
          addIntegerBound(ref.position, dim);
        return;
      }
      std::tie(ref, dim) = *source;
    }
  }

  /// Returns the operand, and the operand's dimension, from which dimension
  /// `dim` of `ref` gets its size, as far as the shapes show. An operand of the
  /// same shape is preferred: the gradient of a convolution's input has the
  /// input's shape.
  std::optional<std::pair<ResultRef, uint32_t>> sourceOf(ResultRef ref,
                                                         uint32_t dim) const {
    const SnapshotNode &node = base.nodes[ref.position];
    auto operands = c10::ArrayRef<ResultRef>(base.operands)
                        .slice(node.firstOperand, node.numOperands);
    for (ResultRef operand : operands)
      if (base.shape(operand).sizes() == base.shape(ref).sizes())
        return std::pair(operand, dim);
    for (ResultRef operand : operands)
      if (auto from = sameSize(base.shape(operand), base.shape(ref), dim))
        return std::pair(operand, *from);
    return std::nullopt;
  }

  /// Returns the operand's dimension that dimension `dim` of a result comes
  /// from, as far as the shapes show: the same one or, if the result has a
  /// different shape, the nearest dimension of the same size, counted from the
  /// last dimension.
  static std::optional<uint32_t> sameSize(const torch::lazy::Shape &from,
                                          const torch::lazy::Shape &to,
                                          uint32_t dim) {
    if (from.dim() == to.dim() && from.size(dim) == to.size(dim))
      return dim;
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
  SliceBounds bounds;
};

} // namespace

SliceBounds torch_ltc::findSliceBounds(const GraphSnapshot &base,
                                       const TraceColumns &columns,
                                       c10::ArrayRef<NumberSlot> slots,
                                       Bounds bounds) {
  if (bounds == Bounds::Constant)
    return {};
  return BoundFinder(base, columns, slots, bounds).run();
}
