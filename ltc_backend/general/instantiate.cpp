//===- instantiate.cpp - A general graph at certain sizes -----------------===//

#include "general/general_graph.h"
#include "general/resized_graph.h"
#include "shape/shape_inference.h"

using namespace torch_ltc;

namespace {

class Instantiation {
public:
  Instantiation(const GraphSnapshot &base, c10::ArrayRef<NumberSlot> slots,
                c10::ArrayRef<int64_t> symbols, c10::ArrayRef<int64_t> derived)
      : base(base), slots(slots), symbols(symbols), derived(derived),
        resized(base) {}

  GraphSnapshot run() {
    IgnoredUserModes ignored;
    for (size_t i = 0; i < base.nodes.size(); ++i) {
      c10::ArrayRef<NumberSlot> ofNode = slotsOf(i);
      if (base.nodes[i].record)
        setNumbers(i, ofNode);
      else
        setSizes(i, ofNode);
      resized.inferShapes(i);
      resized.finish(i);
      checkLengths(ofNode);
    }
    return resized.take();
  }

private:
  int64_t valueOf(const NumberSlot &slot) const {
    std::optional<int64_t> value =
        slot.value.evaluate({symbols, derived, resized.sizes()});
    TORCH_CHECK(value,
                "A number of the graph can't be computed at these sizes.");
    return *value;
  }

  /// Returns the slots of the node at `position`. Must be called once for each
  /// node, in order.
  c10::ArrayRef<NumberSlot> slotsOf(size_t position) {
    size_t begin = nextSlot;
    while (nextSlot < slots.size() && slots[nextSlot].node == position)
      ++nextSlot;
    return slots.slice(begin, nextSlot - begin);
  }

  void setSizes(size_t position, c10::ArrayRef<NumberSlot> ofNode) {
    for (const NumberSlot &slot : ofNode)
      resized.setParameterSize(base.nodes[position].parameter, slot.place,
                               valueOf(slot));
  }

  void setNumbers(size_t position, c10::ArrayRef<NumberSlot> ofNode) {
    const SnapshotNode &node = base.nodes[position];
    std::vector<Word> words = node.attributes->words;
    bool areSizesGiven = hasSizesFromScalars(node);
    for (const NumberSlot &slot : ofNode)
      if (slot.kind == NumberSlot::Kind::Integer)
        words[slot.place] = valueOf(slot);
      else if (areSizesGiven)
        resized.setResultSize(position, slot.result, slot.place, valueOf(slot));
    resized.setWords(position, std::move(words));
  }

  /// Throws c10::Error if a result's size differs from its slot's value: a
  /// slice is shorter than expected if its operand ends before the slice's end.
  void checkLengths(c10::ArrayRef<NumberSlot> ofNode) const {
    for (const NumberSlot &slot : ofNode)
      if (slot.kind == NumberSlot::Kind::ResultSize)
        TORCH_CHECK(resized.sizes()[slot.index] == valueOf(slot), "Size ",
                    slot.place, " of ", base.nodes[slot.node].record->name,
                    " is ", resized.sizes()[slot.index], " instead of ",
                    valueOf(slot), " at these sizes",
                    messageSuffix(base.nodes[slot.node].location));
  }

  const GraphSnapshot &base;
  c10::ArrayRef<NumberSlot> slots;
  c10::ArrayRef<int64_t> symbols, derived;
  ResizedGraph resized;
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
  const std::vector<int64_t> derivedValues = valuesOfDerived(values);
  GraphSnapshot graph =
      Instantiation(*base, slots, values, derivedValues).run();
  graph.name = std::move(name);
  return graph;
}
