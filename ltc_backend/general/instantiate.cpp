//===- instantiate.cpp - A general graph at certain sizes -----------------===//

#include "general/general_graph.h"
#include "graph/node_arguments.h"
#include "shape/infer_shapes.h"
#include "shape/shape_inference.h"

#include <ATen/EmptyTensor.h>

#include <algorithm>

using namespace torch_ltc;
using torch::lazy::Shape;

namespace {

/// Rebuilds the nodes of a graph one after the other.
class Instantiation {
public:
  Instantiation(const GraphSnapshot &base, c10::ArrayRef<NumberSlot> slots,
                c10::ArrayRef<int64_t> symbols)
      : base(base), slots(slots), symbols(symbols), graph(base),
        scalars(base.scalarIsFloat.size(), DynamicScalar::of(int64_t(1))),
        values(base.nodes.size()) {
    for (size_t i = 0; i < scalars.size(); ++i)
      if (base.scalarIsFloat[i])
        scalars[i] = DynamicScalar::of(1.0);
  }

  GraphSnapshot run() {
    IgnoredUserModes ignored;
    // Numbers of parameters are expressions of symbols; those of ops may also
    // contain parameters' sizes.
    for (size_t i = 0; i < slots.size(); ++i)
      if (slots[i].kind == NumberSlot::Kind::ParameterSize)
        setSize(graph.parameters[base.nodes[slots[i].node].parameter].shape,
                slots[i]);
    for (size_t i = 0; i < graph.nodes.size(); ++i) {
      if (graph.nodes[i].record)
        inferOp(i);
      else
        graph.nodes[i].shapes = {
            graph.parameters[graph.nodes[i].parameter].shape};
      finishNode(i);
    }
    return std::move(graph);
  }

private:
  int64_t valueOf(const NumberSlot &slot) const {
    std::optional<int64_t> value = slot.value.evaluate(symbols, sizes);
    TORCH_CHECK(value,
                "A number of the graph can't be computed at these sizes.");
    return *value;
  }

  void setSize(Shape &shape, const NumberSlot &slot) const {
    std::vector<int64_t> changed = shape.sizes().vec();
    changed[slot.place] = valueOf(slot);
    shape = Shape(shape.scalar_type(), changed);
  }

  /// The slots of this node, which are visited in the order of nodes.
  c10::ArrayRef<NumberSlot> slotsOf(size_t position) {
    size_t begin = nextSlot;
    while (nextSlot < slots.size() && slots[nextSlot].node == position)
      ++nextSlot;
    return slots.slice(begin, nextSlot - begin);
  }

  void inferOp(size_t position) {
    SnapshotNode &node = graph.nodes[position];
    std::vector<Word> words = node.attributes->words;
    bool areSizesGiven = hasSizesFromScalars(node);
    for (const NumberSlot &slot : slotsOf(position))
      if (slot.kind == NumberSlot::Kind::Integer)
        words[slot.place] = valueOf(slot);
      else if (areSizesGiven)
        setSize(node.shapes[slot.result], slot);
    node.attributes = internAttributes(node.record->id, words);
    if (isPartWritten(node))
      node.shapes = {graph.shape(graph.operands[node.firstOperand])};
    else if (!areSizesGiven)
      inferShapesOf(node);
  }

  /// Whether a part of the operand is written whose start or end is a scalar of
  /// the program. Its shape rule would compare the part's length with them.
  static bool isPartWritten(const SnapshotNode &node) {
    if (node.record->shapeRule != ShapeRule::slice_scatterShape)
      return false;
    AttributeReader reader(node.attributes->words);
    return std::ranges::any_of(node.record->arguments, [&](const auto &) {
      return reader.next().tag == Tag::dynamicInt;
    });
  }

  void inferShapesOf(SnapshotNode &node) {
    NodeArguments builder(graph, node, values, scalars);
    AttributeReader reader(node.attributes->words);
    std::vector<c10::IValue> arguments;
    for (const ArgumentSpec &spec : node.record->arguments)
      arguments.push_back(builder.build(reader.next(), spec));
    OpCall call{.record = *node.record, .arguments = arguments};
    for (uint32_t i = 0; i < node.numOperands; ++i)
      call.operands.push_back(
          &graph.shape(graph.operands[node.firstOperand + i]));
    call.attributeHash = node.attributes->hash;
    std::vector<Shape> shapes = inferShapesOnly(call);
    checkAlike(shapes.size() == node.shapes.size(), node);
    for (size_t i = 0; i < shapes.size(); ++i) {
      checkAlike(shapes[i].dim() == node.shapes[i].dim(), node);
      // The default dtype may have changed since the graph was traced.
      node.shapes[i] = Shape(node.shapes[i].scalar_type(), shapes[i].sizes());
    }
  }

  void finishNode(size_t position) {
    const SnapshotNode &node = graph.nodes[position];
    if (!node.record)
      slotsOf(position);
    for (size_t k = 0; k < node.shapes.size(); ++k) {
      const Shape &shape = node.shapes[k];
      const Shape &former = base.nodes[position].shapes[k];
      for (int64_t d = 0; d < shape.dim(); ++d)
        checkAlike(shape.size(d) == former.size(d) ||
                       (shape.size(d) > 1 && former.size(d) > 1),
                   node);
      sizes.insert(sizes.end(), shape.sizes().begin(), shape.sizes().end());
      values[position].push_back(
          shape.scalar_type() == c10::ScalarType::Undefined
              ? at::Tensor()
              : at::Tensor(at::detail::empty_meta(shape.sizes(),
                                                  shape.scalar_type())));
    }
  }

  static void checkAlike(bool isAlike, const SnapshotNode &node) {
    TORCH_CHECK(isAlike, "Results of ",
                node.record ? node.record->name : "a parameter",
                " have sizes of another kind (0 or 1) at these sizes",
                messageSuffix(node.location));
  }

  const GraphSnapshot &base;
  c10::ArrayRef<NumberSlot> slots;
  c10::ArrayRef<int64_t> symbols;
  GraphSnapshot graph;
  std::vector<DynamicScalar> scalars;
  std::vector<int64_t> sizes; // of all nodes so far
  std::vector<std::vector<at::Tensor>> values;
  size_t nextSlot = 0;
};

} // namespace

GraphSnapshot GeneralGraph::instantiate(c10::ArrayRef<int64_t> values,
                                        std::string name) const {
  TORCH_CHECK(values.size() == sizeSymbols.size(), "The graph has ",
              sizeSymbols.size(), " symbols, but got ", values.size(),
              " values.");
  for (size_t i = 0; i < values.size(); ++i)
    TORCH_CHECK(values[i] >= sizeSymbols[i].lowest, "Symbol s", i,
                " is at least ", sizeSymbols[i].lowest, ", but got ", values[i],
                ".");
  GraphSnapshot graph = Instantiation(*base, slots, values).run();
  graph.name = std::move(name);
  return graph;
}
