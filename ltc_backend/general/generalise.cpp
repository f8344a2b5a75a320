//===- generalise.cpp - Symbols and expressions from traces ---------------===//

#include "general/general_graph.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

using namespace torch_ltc;

namespace {

/// Distinct sizes among which the value of an argument is searched for, besides
/// those of its operands.
constexpr size_t maxCandidates = 48;

/// What becomes of a constant size of a parameter that bounds slices.
enum class Bounds : uint8_t {
  Constant,
  Size,  // a symbol, also in parameters of the same shape
  Equal, // the same, and in equal integers of arguments
  All    // the same, and in all equal sizes of parameters
};

} // namespace

namespace torch_ltc {

/// Fits the slots of a general graph, first those of parameters.
class Generalisation {
public:
  /// `arguments`: the relations of arguments to sizes. `asMultiples`: a symbol
  /// is multiplied by what divides its number in all traces. `boundsVary`: a
  /// constant size of a parameter becomes a symbol where it bounds slices of
  /// varying lengths, so that their stand-ins may be large.
  Generalisation(GeneralGraph &graph, Relations relations, Relations arguments,
                 bool asMultiples, Bounds boundsVary)
      : graph(graph), relations(relations), arguments(arguments),
        asMultiples(asMultiples), boundsVary(boundsVary) {}

  /// Whether there are such bounds.
  bool run() {
    findSlots();
    if (boundsVary != Bounds::Constant)
      findBounds();
    fitParameters();
    fitNodes();
    orderSymbols();
    return !bounds.empty() || hasFilledSizes;
  }

private:
  Column columnOf(const NumberSlot &slot) const {
    Column column;
    for (const TraceNumbers &trace : graph.traces)
      column.push_back(graph.numberOf(slot, trace));
    return column;
  }

  Column sizeColumn(uint32_t index) const {
    Column column;
    for (const TraceNumbers &trace : graph.traces)
      column.push_back(trace.sizes[index]);
    return column;
  }

  void findSlots() {
    const GraphSnapshot &base = *graph.base;
    std::vector<bool> isKnown(base.parameters.size(), false);
    uint32_t nextSize = 0, nextInteger = 0;
    for (uint32_t i = 0; i < base.nodes.size(); ++i) {
      const SnapshotNode &node = base.nodes[i];
      firstSize.push_back(nextSize);
      bool isParameter = !node.record && !isKnown[node.parameter];
      if (isParameter)
        isKnown[node.parameter] = true;
      if (node.record)
        addLengths(i, nextSize);
      if (node.record)
        forEachFollowingWord(*node.record, node.attributes->words,
                             [&](const ArgumentSpec &spec, size_t position) {
                               graph.slots.push_back(
                                   {.kind = NumberSlot::Kind::Integer,
                                    .node = i,
                                    .index = nextInteger++,
                                    .place = uint32_t(position),
                                    .isPosition = spec.varies});
                             });
      bool isSlot = isParameter || (node.record && hasSizesFromScalars(node));
      for (uint32_t k = 0; k < node.shapes.size(); ++k)
        for (uint32_t d = 0; d < node.shapes[k].dim(); ++d, ++nextSize)
          if (isSlot && node.shapes[k].size(d) > 1)
            graph.slots.push_back(
                {.kind = node.record ? NumberSlot::Kind::ResultSize
                                     : NumberSlot::Kind::ParameterSize,
                 .node = i,
                 .index = nextSize,
                 .result = k,
                 .place = d});
    }
  }

  /// The length of a slice, if it differs between traces. It comes before the
  /// slice's start and end: if these follow from no other sizes, start and
  /// length are symbols, because a difference of symbols is small at their
  /// stand-ins. Likewise the length to which a varying size is padded, which
  /// may be the same in all traces: it may have to be a multiple of a number.
  void addLengths(uint32_t position, uint32_t size) {
    const SnapshotNode &node = graph.base->nodes[position];
    bool isPad = node.record->shapeRule == ShapeRule::constant_padShape;
    if ((!isPad && node.record->shapeRule != ShapeRule::sliceShape) ||
        hasSizesFromScalars(node))
      return;
    for (uint32_t d = 0; d < node.shapes[0].dim(); ++d) {
      bool isFilled = isPad && boundsVary != Bounds::Constant &&
                      !candidateOf(size + d) &&
                      candidateOf(sizeOfOperand(node, d));
      hasFilledSizes |= isFilled;
      if (isFilled || candidateOf(size + d))
        graph.slots.push_back({.kind = NumberSlot::Kind::ResultSize,
                               .node = position,
                               .index = size + d,
                               .place = d});
    }
  }

  /// In `TraceNumbers::sizes`, of the first operand.
  uint32_t sizeOfOperand(const SnapshotNode &node, uint32_t dim) const {
    return firstSizeOf(graph.base->operands[node.firstOperand]) + dim;
  }

  uint32_t firstSizeOf(ResultRef ref) const {
    uint32_t first = firstSize[ref.position];
    for (uint32_t k = 0; k < ref.index; ++k)
      first += uint32_t(graph.base->nodes[ref.position].shapes[k].dim());
    return first;
  }

  /// Indices in `TraceNumbers::sizes` of parameters' sizes that bound a slice
  /// whose length differs between traces.
  void findBounds() {
    const GraphSnapshot &base = *graph.base;
    for (uint32_t i = 0; i < base.nodes.size(); ++i) {
      const SnapshotNode &node = base.nodes[i];
      if (!node.record)
        continue;
      addFilledSizes(i);
      if (node.record->shapeRule == ShapeRule::sliceShape)
        addBounds({.position = i, .index = 0}, node);
      else if (node.record->shapeRule == ShapeRule::slice_scatterShape)
        addBounds(base.operands[node.firstOperand + 1], node);
    }
  }

  /// Of a part of the node's first operand.
  void addBounds(ResultRef part, const SnapshotNode &node) {
    const GraphSnapshot &base = *graph.base;
    ResultRef whole = base.operands[node.firstOperand];
    if (part.index != 0 || base.shape(part).dim() != base.shape(whole).dim())
      return;
    for (uint32_t d = 0; d < base.shape(part).dim(); ++d)
      if (candidateOf(firstSize[part.position] + d))
        if (auto bound = boundOf(whole, d))
          addBound(*bound);
  }

  /// A constant size to which a varying one is padded is that of a parameter.
  void addFilledSizes(uint32_t position) {
    const GraphSnapshot &base = *graph.base;
    const SnapshotNode &node = base.nodes[position];
    if (!node.numOperands || node.record->name != "aten::constant_pad_nd")
      return;
    ResultRef operand = base.operands[node.firstOperand];
    for (uint32_t d = 0; d < node.shapes[0].dim(); ++d) {
      if (candidateOf(firstSize[position] + d) || operand.index != 0 ||
          !candidateOf(firstSize[operand.position] + d))
        continue;
      for (const NumberSlot &slot : graph.slots)
        if (slot.kind == NumberSlot::Kind::ParameterSize &&
            !candidateOf(slot.index) && !isStatic(slot) &&
            graph.traces.front().sizes[slot.index] == node.shapes[0].size(d))
          bounds.insert(slot.index);
    }
  }

  /// Also at the same place of parameters of the same shape: an optimizer's
  /// states.
  void addBound(uint32_t size) {
    const GraphSnapshot &base = *graph.base;
    const NumberSlot *slot = nullptr;
    for (const NumberSlot &other : graph.slots)
      if (other.kind == NumberSlot::Kind::ParameterSize && other.index == size)
        slot = &other;
    if (!slot || isStatic(*slot) || !bounds.insert(size).second)
      return;
    c10::ArrayRef<int64_t> shape = base.nodes[slot->node].shapes[0].sizes();
    for (const NumberSlot &other : graph.slots)
      if (other.kind == NumberSlot::Kind::ParameterSize &&
          other.place == slot->place && !isStatic(other) &&
          base.nodes[other.node].shapes[0].sizes() == shape)
        bounds.insert(other.index);
    if (boundsVary != Bounds::All)
      return;
    const std::vector<int64_t> &sizes = graph.traces.front().sizes;
    for (const NumberSlot &other : graph.slots)
      if (other.kind == NumberSlot::Kind::ParameterSize && !isStatic(other) &&
          !candidateOf(other.index) && sizes[other.index] == sizes[size])
        bounds.insert(other.index);
  }

  /// A size of a parameter that is marked.
  bool isStatic(const NumberSlot &slot) const {
    const GraphSnapshot &base = *graph.base;
    return isMarkedStatic(
        base.parameters[base.nodes[slot.node].parameter].marks, slot.place);
  }

  /// The parameter's size that equals this size of a value.
  std::optional<uint32_t> boundOf(ResultRef ref, uint32_t dim) const {
    const GraphSnapshot &base = *graph.base;
    for (;;) {
      const SnapshotNode &node = base.nodes[ref.position];
      const auto &shape = base.shape(ref);
      uint32_t size = firstSizeOf(ref) + dim;
      if (candidateOf(size))
        return std::nullopt; // it varies already
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

  SizeExpression addSymbol(uint32_t slot, const Column &column) {
    int64_t multiple = 1;
    if (asMultiples)
      multiple =
          std::accumulate(column.begin(), column.end(), int64_t(0),
                          [](int64_t a, int64_t b) { return std::gcd(a, b); });
    int64_t lowest = graph.slots[slot].isPosition ? 1 : 2;
    auto isTooLarge = [&](int64_t divisor) {
      return std::ranges::any_of(
          column, [&](int64_t v) { return std::abs(v) < lowest * divisor; });
    };
    for (int64_t factor = 2; multiple > 1 && isTooLarge(multiple); ++factor)
      while (multiple % factor == 0 && isTooLarge(multiple))
        multiple /= factor;
    if (column[0] < 0)
      multiple = -multiple;
    SizeCandidate symbol{
        .term = {.isSymbol = true, .index = uint32_t(graph.sizeSymbols.size())},
        .values = column};
    for (int64_t &value : symbol.values)
      value /= multiple;
    auto [least, most] = std::ranges::minmax(symbol.values);
    graph.sizeSymbols.push_back({.slot = slot,
                                 .multiple = multiple,
                                 .least = least,
                                 .most = most,
                                 .lowest = lowest});
    symbols.push_back(symbol);
    return SizeExpression::of(symbol.term, multiple);
  }

  /// The smallest first, so that a size that is a multiple of another one
  /// becomes an expression of it.
  void fitParameters() {
    std::vector<uint32_t> order;
    for (uint32_t i = 0; i < graph.slots.size(); ++i)
      if (graph.slots[i].kind == NumberSlot::Kind::ParameterSize)
        order.push_back(i);
    std::ranges::stable_sort(order, {}, [&](uint32_t i) {
      return graph.numberOf(graph.slots[i], graph.traces.front());
    });
    for (uint32_t i : order) {
      Column column = columnOf(graph.slots[i]);
      auto value = bounds.contains(graph.slots[i].index)
                       ? fitBound(column)
                       : fitParameterSize(column, symbols, relations);
      graph.slots[i].value = value ? *value : addSymbol(i, column);
    }
  }

  /// Parameters that are indexed together have one bound.
  std::optional<SizeExpression> fitBound(const Column &column) const {
    for (const SizeCandidate &symbol : symbols)
      if (symbol.values == column)
        return SizeExpression::of(symbol.term);
    return std::nullopt;
  }

  void fitNodes() {
    others = symbols;
    uint32_t slot = 0;
    for (uint32_t i = 0; i < graph.base->nodes.size(); ++i) {
      std::optional<std::vector<std::vector<SizeCandidate>>> operands;
      for (; slot < graph.slots.size() && graph.slots[slot].node == i; ++slot) {
        NumberSlot &number = graph.slots[slot];
        if (number.kind == NumberSlot::Kind::ParameterSize)
          continue;
        Column column = columnOf(number);
        if (!operands)
          operands = sizesOfOperands(graph.base->nodes[i]);
        std::optional<SizeExpression> value =
            isKnownLength(slot, *operands)
                ? SizeExpression::of({.isSymbol = false, .index = number.index})
                : fitNumber(number, column, *operands);
        if (!value) {
          value = addSymbol(slot, column);
          others.insert(others.begin(), symbols.back());
        }
        number.value = *value;
      }
      addSizes(i);
    }
  }

  /// Whether the slot is the length of a slice whose start and end follow from
  /// other sizes, or a padded length whose pad does, so that the length needs
  /// no expression of its own.
  bool isKnownLength(uint32_t slot,
                     c10::ArrayRef<std::vector<SizeCandidate>> operands) const {
    const NumberSlot &length = graph.slots[slot];
    if (length.kind != NumberSlot::Kind::ResultSize ||
        hasSizesFromScalars(graph.base->nodes[length.node]))
      return false;
    bool isPad = isPadded(length);
    bool areFound = true;
    for (const NumberSlot &other : graph.slots)
      if (other.node == length.node &&
          other.kind == NumberSlot::Kind::Integer && areFound &&
          (!isPad || otherPad(length, columnOf(other))))
        areFound = bool(fitArgument(columnOf(other), operands, others,
                                    std::min(arguments, Relations::Some)));
    return areFound;
  }

  std::optional<SizeExpression>
  fitNumber(const NumberSlot &number, const Column &column,
            c10::ArrayRef<std::vector<SizeCandidate>> operands) const {
    if (boundsVary >= Bounds::Equal)
      for (const SizeCandidate &symbol : symbols)
        if (graph.sizeSymbols[symbol.term.index].isBound() &&
            symbol.values == column)
          return SizeExpression::of(symbol.term);
    bool isFilled = number.kind == NumberSlot::Kind::ResultSize &&
                    isPadded(number) && !candidateOf(number.index);
    if (isFilled && boundsVary != Bounds::Constant)
      return std::nullopt; // a symbol
    auto value = fitArgument(column, operands, others, arguments);
    if (value || number.kind != NumberSlot::Kind::Integer)
      return value;
    return isPadded(number) ? fitPad(number, column) : fitEnd(number, column);
  }

  bool isPadded(const NumberSlot &number) const {
    return graph.base->nodes[number.node].record->shapeRule ==
           ShapeRule::constant_padShape;
  }

  /// What is padded at the other end of this dimension, with the sign changed,
  /// if it is the same in all traces.
  std::optional<int64_t> otherPad(const NumberSlot &length,
                                  const Column &pad) const {
    Column sizes =
        sizeColumn(sizeOfOperand(graph.base->nodes[length.node], length.place));
    Column lengths = columnOf(length);
    int64_t other = pad[0] - (lengths[0] - sizes[0]);
    for (size_t i = 1; i < pad.size(); ++i)
      if (pad[i] - (lengths[i] - sizes[i]) != other)
        return std::nullopt;
    return other;
  }

  /// The padded length minus that of the operand.
  std::optional<SizeExpression> fitPad(const NumberSlot &number,
                                       const Column &column) const {
    for (const NumberSlot &length : graph.slots) {
      if (length.node != number.node ||
          length.kind != NumberSlot::Kind::ResultSize)
        continue;
      std::optional<int64_t> other = otherPad(length, column);
      SizeExpression pad = length.value;
      if (!other || pad.isConstant() || pad.addend || isItself(length))
        continue;
      uint32_t size =
          sizeOfOperand(graph.base->nodes[length.node], length.place);
      pad.addend = SizeTerm{.isSymbol = false, .index = size};
      pad.sign = -1;
      pad.offset += *other;
      return pad;
    }
    return std::nullopt;
  }

  /// Whether the length has no expression of its own.
  static bool isItself(const NumberSlot &length) {
    return std::ranges::any_of(length.value.product, [&](SizeTerm term) {
      return !term.isSymbol && term.index == length.index;
    });
  }

  /// The end of a slice: its length plus its start. The size of the result
  /// isn't known when the arguments are computed, but what it is computed from
  /// is.
  std::optional<SizeExpression> fitEnd(const NumberSlot &number,
                                       const Column &column) const {
    if (graph.base->nodes[number.node].record->shapeRule !=
        ShapeRule::sliceShape)
      return std::nullopt;
    auto ofNode = std::ranges::equal_range(graph.slots, number.node, {},
                                           &NumberSlot::node);
    for (const NumberSlot &length : ofNode)
      for (const NumberSlot &start : ofNode)
        if (length.kind == NumberSlot::Kind::ResultSize &&
            start.kind == number.kind && start.index < number.index)
          if (auto end = sumOf(length, start))
            if (isSum(column, columnOf(length), columnOf(start)))
              return end;
    return std::nullopt;
  }

  static bool isSum(const Column &sum, const Column &a, const Column &b) {
    for (size_t i = 0; i < sum.size(); ++i)
      if (sum[i] != a[i] + b[i])
        return false;
    return true;
  }

  /// Of two fitted slots: a length without an addend, and a start that is a
  /// constant or a term.
  std::optional<SizeExpression> sumOf(const NumberSlot &length,
                                      const NumberSlot &start) const {
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

  std::vector<std::vector<SizeCandidate>>
  sizesOfOperands(const SnapshotNode &node) const {
    std::vector<std::vector<SizeCandidate>> result;
    for (uint32_t i = 0; i < node.numOperands; ++i) {
      ResultRef ref = graph.base->operands[node.firstOperand + i];
      uint32_t first = firstSizeOf(ref);
      std::vector<SizeCandidate> &sizes = result.emplace_back();
      for (uint32_t d = 0; d < graph.base->shape(ref).dim(); ++d)
        if (auto candidate = candidateOf(first + d))
          sizes.push_back(*candidate);
    }
    return result;
  }

  /// A size that differs between traces.
  std::optional<SizeCandidate> candidateOf(uint32_t index) const {
    SizeCandidate candidate{.term = {.isSymbol = false, .index = index},
                            .values = sizeColumn(index)};
    bool differs = std::ranges::any_of(candidate.values, [&](int64_t value) {
      return value != candidate.values[0];
    });
    return differs ? std::optional(candidate) : std::nullopt;
  }

  /// Makes the node's sizes available to later arguments.
  void addSizes(uint32_t position) {
    uint32_t end = position + 1 < firstSize.size()
                       ? firstSize[position + 1]
                       : uint32_t(graph.traces.front().sizes.size());
    for (uint32_t i = firstSize[position]; i < end; ++i) {
      if (others.size() >= maxCandidates)
        return;
      auto candidate = candidateOf(i);
      if (candidate &&
          std::ranges::none_of(others, [&](const SizeCandidate &other) {
            return other.values == candidate->values;
          }))
        others.push_back(*candidate);
    }
  }

  /// Stand-ins grow with the symbol's index, and a slice's end, an index or a
  /// diagonal's length must stay below the size that bounds it. So symbols are
  /// ordered by the sum of their values, which is lower for a symbol that is
  /// below another one in all traces.
  void orderSymbols() {
    std::vector<uint32_t> order(symbols.size()), rank(symbols.size());
    std::iota(order.begin(), order.end(), 0);
    std::ranges::stable_sort(order, {}, [&](uint32_t i) {
      const Column &values = symbols[i].values;
      return std::accumulate(values.begin(), values.end(), int64_t(0));
    });
    std::vector<SizeSymbol> ordered;
    for (uint32_t i = 0; i < order.size(); ++i) {
      ordered.push_back(graph.sizeSymbols[order[i]]);
      rank[order[i]] = i;
    }
    graph.sizeSymbols = std::move(ordered);
    auto rename = [&](SizeTerm &term) {
      if (term.isSymbol)
        term.index = rank[term.index];
    };
    for (NumberSlot &slot : graph.slots) {
      std::ranges::for_each(slot.value.product, rename);
      if (slot.value.quotient)
        rename(*slot.value.quotient);
      if (slot.value.addend)
        rename(*slot.value.addend);
    }
  }

  GeneralGraph &graph;
  Relations relations;
  Relations arguments;
  bool asMultiples;
  Bounds boundsVary;
  std::vector<uint32_t> firstSize; // by node
  std::set<uint32_t> bounds;
  bool hasFilledSizes = false;
  std::vector<SizeCandidate> symbols, others;
};

} // namespace torch_ltc

GeneralGraphPtr GeneralGraph::generalise(GraphSnapshotPtr base,
                                         std::vector<TraceNumbers> traces,
                                         std::string &reason) {
  TORCH_CHECK(traces.size() > 1, "Two traces are needed to generalise one.");
  for (const TraceNumbers &trace : traces)
    if (trace.skeleton != traces.front().skeleton) {
      reason = "the traces differ in more than sizes";
      return nullptr;
    }
  if (traces.size() > maxTraces)
    traces.erase(traces.begin(), traces.end() - maxTraces);
  reason.clear();
  bool hasBounds = true;
  auto attempt = [&](Bounds boundsVary, bool asMultiples, Relations relations,
                     Relations arguments) -> std::shared_ptr<GeneralGraph> {
    if (!hasBounds && boundsVary != Bounds::Constant)
      return nullptr;
    auto graph = std::shared_ptr<GeneralGraph>(new GeneralGraph(base, traces));
    hasBounds =
        Generalisation(*graph, relations, arguments, asMultiples, boundsVary)
            .run();
    std::string why = graph->findStandIns();
    if (why.empty())
      return graph;
    if (reason.empty())
      reason = why;
    return nullptr;
  };
  // The more general form first; the reason is the one for this form.
  constexpr std::pair<Relations, Relations> efforts[] = {
      {Relations::Few, Relations::Few},
      {Relations::Few, Relations::Some},
      {Relations::Many, Relations::Some},
      {Relations::Many, Relations::Many}};
  constexpr Bounds allBounds[] = {Bounds::Equal, Bounds::All, Bounds::Size,
                                  Bounds::Constant};
  for (Bounds boundsVary : allBounds)
    for (bool asMultiples : {false, true})
      for (auto [relations, arguments] : efforts)
        if (auto graph = attempt(boundsVary, asMultiples, relations, arguments))
          return graph;
  // Relations that two traces fulfil by accident (a random start and a size)
  // may be impossible at other sizes.
  for (Bounds boundsVary : allBounds)
    if (auto graph = attempt(boundsVary, /*asMultiples=*/false, Relations::Few,
                             Relations::Equal))
      return graph;
  return nullptr;
}

GeneralGraphPtr GeneralGraph::refine(TraceNumbers trace,
                                     std::string &reason) const {
  std::vector<TraceNumbers> all = traces;
  all.push_back(std::move(trace));
  return generalise(base, std::move(all), reason);
}
