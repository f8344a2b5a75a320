//===- slice_bounds.cpp - Constant sizes that bound slices ----------------===//

#include "general/slice_bounds.h"

#include "general/size_sources.h"

#include <algorithm>
#include <numeric>
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

  SliceBounds run(c10::ArrayRef<GradientSize> gradients) {
    for (const GradientSize &gradient : gradients)
      if (gradient.whole && gradient.varies())
        addBoundOf(gradient.whole->first, gradient.whole->second);
    for (uint32_t i = 0; i < base.nodes.size(); ++i) {
      const SnapshotNode &node = base.nodes[i];
      if (!node.record)
        continue;
      addPaddedSizes(i);
      if (node.record->shapeRule == ShapeRule::sliceShape)
        addBoundsOfPart({.position = i, .index = 0}, node);
      else if (node.record->shapeRule == ShapeRule::slice_scatterShape)
        addBoundsOfPart(base.operands[node.firstOperand + 1], node);
      else if (isGradientOfPart(node))
        addBoundsOfGradient(i);
      else if (hasWindows(node))
        addBoundsOfPart({.position = i, .index = 0}, node);
      else
        addBoundsOfDiagonal(i);
    }
    if (mode == Bounds::Operands)
      for (const NumberSlot &slot : slots)
        if (slot.kind == NumberSlot::Kind::Integer &&
            columns.integerVaries(slot.index))
          addSizesOfOperands(slot.node);
    for (const GradientSize &gradient : gradients)
      if (gradient.whole && isBound(gradient.values.front()))
        addBoundOf(gradient.whole->first, gradient.whole->second);
    return std::move(bounds);
  }

private:
  /// Whether an integer that bounds slices has this value.
  bool isBound(int64_t size) const {
    return std::ranges::any_of(bounds.integers, [&](uint32_t integer) {
      return columns.integers(integer).front() == size;
    });
  }

  /// Whether the op is the gradient of a slice or of windows, with an argument
  /// `input_sizes`.
  static bool isGradientOfPart(const SnapshotNode &node) {
    return node.record->shapeRule == ShapeRule::slice_backwardShape ||
           node.record->shapeRule == ShapeRule::unfold_backwardShape;
  }

  /// Whether a window moves over the spatial dimensions of the op's first
  /// operand. If the window's size, distance or position varies, a constant
  /// size of the operand bounds it.
  static bool hasWindows(const SnapshotNode &node) {
    return node.record->shapeRule == ShapeRule::convolutionShape ||
           node.record->shapeRule == ShapeRule::avg_pool2dShape ||
           node.record->shapeRule == ShapeRule::max_pool2dShape;
  }

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
      addBoundOfGradient(position, d);
    }
  }

  void addBoundOfGradient(uint32_t position, uint32_t dim) {
    addIntegerBound(position, dim);
    const torch::lazy::Shape &whole = base.nodes[position].shapes[0];
    for (const NumberSlot *slot : parameterSizes)
      if (slot->place == dim &&
          base.nodes[slot->node].shapes[0].sizes() == whole.sizes())
        addBound(slot->index);
  }

  /// Adds the sides of the matrix if the length of its diagonal varies, which
  /// is read or written.
  void addBoundsOfDiagonal(uint32_t position) {
    const SnapshotNode &node = base.nodes[position];
    ResultRef whole{.position = position, .index = 0}, part = whole;
    if (node.record->shapeRule == ShapeRule::diagonalShape)
      whole = base.operands[node.firstOperand];
    else if (node.record->shapeRule == ShapeRule::diagonal_scatterShape)
      part = base.operands[node.firstOperand + 1];
    else if (node.record->shapeRule == ShapeRule::diagonal_backwardShape)
      part = base.operands[node.firstOperand];
    else
      return;
    const int64_t rank = base.shape(whole).dim();
    if (!columns.varies(columns.firstSize(part) + uint32_t(rank) - 2))
      return;
    for (const char *side : {"dim1", "dim2"}) {
      auto attribute =
          findAttribute(*node.record, node.attributes->words, side);
      const auto dim = uint32_t((attribute->integer() + rank) % rank);
      if (whole.position == position)
        addBoundOfGradient(position, dim);
      else
        addBoundOf(whole, dim);
    }
  }

  /// Adds the integer at place `dim` of the node's list of sizes.
  void addIntegerBound(uint32_t position, uint32_t dim) {
    const NumberSlot *slot = integerSlot(position, dim);
    if (slot && bounds.integers.insert(slot->index).second) {
      addEqualSizes(base.nodes[position].shapes[0].size(dim));
      addEqualIntegers(base.nodes[position].shapes[0].size(dim), 0);
    }
  }

  /// In the modes from `Equal`, adds the integers of the nodes from `first`
  /// that equal the bound `size`: gradients of `x[:1]` and `x[:n]`, which may
  /// be added, have the same `input_sizes`.
  void addEqualIntegers(int64_t size, uint32_t first) {
    if (mode < Bounds::Equal)
      return;
    for (const NumberSlot &slot : slots)
      if (slot.kind == NumberSlot::Kind::Integer && slot.node >= first &&
          !columns.integerVaries(slot.index) &&
          columns.integers(slot.index).front() == size)
        bounds.integers.insert(slot.index);
  }

  /// Returns the slot of the integer at place `dim` of the node's list of
  /// sizes; null if that integer varies or isn't the result's size.
  const NumberSlot *integerSlot(uint32_t position, uint32_t dim) const {
    const int64_t size = base.nodes[position].shapes[0].size(dim);
    const Word *words = base.nodes[position].attributes->words.data();
    const bool isRange =
        base.nodes[position].record->shapeRule == ShapeRule::arangeShape;
    AttributeReader reader(base.nodes[position].attributes->words);
    while (!reader.atEnd()) {
      Attribute attribute = reader.next();
      const bool isEnd = isRange && attribute.tag == Tag::integer &&
                         attribute.integer() == size;
      if (attribute.tag != Tag::integers && !isEnd)
        continue;
      const size_t place = attribute.payload - words + dim;
      for (const NumberSlot &slot : slots)
        if (slot.node == position && slot.kind == NumberSlot::Kind::Integer &&
            slot.place == place && !columns.integerVaries(slot.index) &&
            attribute.payload[dim] == size)
          return &slot;
      break;
    }
    return nullptr;
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
    if (!node.numOperands ||
        node.record->shapeRule != ShapeRule::constant_padShape)
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
  void addBound(uint32_t size, int64_t multiple = 1) {
    const NumberSlot *bound = nullptr;
    for (const NumberSlot *slot : parameterSizes)
      if (slot->index == size)
        bound = slot;
    if (!bound || columns.varies(size) || isStatic(*bound))
      return;
    if (multiple > 1) {
      int64_t &known = bounds.multiples.emplace(size, 1).first->second;
      known = std::lcm(known, multiple);
    }
    if (!bounds.sizes.insert(size).second)
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
  /// `ref` gets its size, unless the size varies. The size stays a multiple of
  /// `multiple`.
  void addBoundOf(ResultRef ref, uint32_t dim, int64_t multiple = 1) {
    for (;;) {
      const SnapshotNode &node = base.nodes[ref.position];
      uint32_t size = columns.firstSize(ref) + dim;
      if (columns.varies(size))
        return;
      if (!node.record)
        return addBound(size, multiple);
      auto source = sourceOfSize(base, ref, dim);
      if (!source)
        return addBoundsWithoutSource(ref, dim, multiple);
      std::tie(ref, dim) = *source;
    }
  }

  /// Whether the op repeats or reflects elements at the borders of its operand.
  bool isPadded(ResultRef ref) const {
    const SnapshotNode &node = base.nodes[ref.position];
    return node.numOperands == 1 && node.record->repeatsEdges;
  }

  /// Adds the integer that gives dimension `dim` of `ref`, or the sizes from
  /// which it follows in a view.
  void addBoundsWithoutSource(ResultRef ref, uint32_t dim, int64_t multiple) {
    std::optional<ViewedDims> viewed = viewedDims(base, ref, dim);
    if (!viewed && isPadded(ref)) {
      bounds.computedSizes.insert(columns.firstSize(ref) + dim);
      addEqualIntegers(base.shape(ref).size(dim), ref.position + 1);
      return addBoundOf(base.operands[base.nodes[ref.position].firstOperand],
                        dim);
    }
    if (!viewed) {
      if (ref.index == 0)
        addIntegerBound(ref.position, dim);
      return;
    }
    bounds.computedSizes.insert(columns.firstSize(ref) + dim);
    ViewedSize size{.sizes = {}, .divisor = viewed->others};
    int64_t rest = viewed->others * multiple;
    for (uint32_t d = viewed->first; d < viewed->end; ++d) {
      size.sizes.push_back(columns.firstSize(viewed->operand) + d);
      int64_t common = std::gcd(base.shape(viewed->operand).size(d), rest);
      rest /= common;
      addBoundOf(viewed->operand, d, common);
    }
    if (auto slot = integerSlot(ref.position, dim))
      bounds.viewedSizes.emplace(slot->index, std::move(size));
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
                                       c10::ArrayRef<GradientSize> gradients,
                                       Bounds bounds) {
  if (bounds == Bounds::Constant)
    return {};
  return BoundFinder(base, columns, slots, bounds).run(gradients);
}
