//===- generalize.cpp - Symbols and expressions from traces ---------------===//

#include "general/part_numbers.h"
#include "general/slice_bounds.h"

#include <algorithm>
#include <numeric>

using namespace torch_ltc;

namespace {

/// Maximum number of distinct sizes that are tried as terms of an argument's
/// expression, besides those of the op's operands.
constexpr size_t kMaxCandidates = 48;

/// The order in which numbers get their expressions. With `Nodes`, parameters
/// come first, then the nodes in order, so sizes of preceding values can be
/// terms. In a program of gradients, however, a sum or a product may precede
/// its terms, and half of a size may precede the size: `n * k` is recognized as
/// a multiple of `repeat_interleave`'s `k` only if smaller numbers come first,
/// and the length of `x[::2]` as a quotient only if larger numbers come first.
enum class NumberOrder : uint8_t { Nodes, FromSmallest, FromLargest };

} // namespace

namespace torch_ltc {

/// Fits expressions to the slots of a general graph, first to those of
/// parameters.
class Generalization {
public:
  /// `arguments`: the relations that are tried for arguments. `asMultiples`:
  /// whether a symbol is multiplied by the greatest common divisor of its
  /// slot's numbers in all traces. `boundsVary`: which constant sizes become
  /// symbols because they bound slices of varying lengths, so that the
  /// stand-ins of these lengths may be large. `order`: the order in which
  /// numbers are fitted.
  Generalization(GeneralGraph &graph, Relations relations, Relations arguments,
                 bool asMultiples, Bounds boundsVary, NumberOrder order)
      : graph(graph), columns(*graph.base, graph.traces),
        parts(*graph.base, columns, graph.slots), relations(relations),
        arguments(arguments), asMultiples(asMultiples), boundsVary(boundsVary),
        order(order) {}

  /// Sets the graph's slots and symbols. Returns whether `boundsVary` has an
  /// effect: whether constant sizes bound slices, or varying sizes are padded
  /// to constant ones.
  bool run() {
    NumberSlots found =
        findNumberSlots(*graph.base, columns,
                        /*withPaddedLengths=*/boundsVary != Bounds::Constant,
                        /*withInferredSizes=*/order != NumberOrder::Nodes);
    graph.slots = std::move(found.slots);
    const std::vector<GradientSize> gradients =
        findGradientSizes(*graph.base, columns, graph.slots);
    bounds = findSliceBounds(*graph.base, columns, graph.slots, gradients,
                             boundsVary);
    isFitted.resize(graph.slots.size());
    fitGradients(gradients);
    fitParameters();
    others = symbols;
    others.insert(others.end(), derived.begin(), derived.end());
    if (order != NumberOrder::Nodes)
      fitBySize();
    fitNodes();
    orderSymbols();
    return !bounds.empty() || found.hasPaddedLengths;
  }

private:
  Column columnOf(const NumberSlot &slot) const {
    return numbersOf(columns, slot);
  }

  static bool isConstant(const Column &column) {
    return std::ranges::min(column) == std::ranges::max(column);
  }

  SizeExpression addSymbol(uint32_t slot, const Column &column) {
    int64_t multiple = 1;
    // A constant column would be a multiple of itself.
    if (asMultiples && !isConstant(column))
      multiple =
          std::accumulate(column.begin(), column.end(), int64_t(0),
                          [](int64_t a, int64_t b) { return std::gcd(a, b); });
    int64_t lowest = graph.slots[slot].lowest;
    if (auto known = bounds.multiples.find(graph.slots[slot].index);
        known != bounds.multiples.end() &&
        graph.slots[slot].kind == NumberSlot::Kind::ParameterSize)
      multiple = std::lcm(multiple, known->second);
    auto isTooLarge = [&](int64_t divisor) {
      return std::ranges::any_of(
          column, [&](int64_t v) { return std::abs(v) < lowest * divisor; });
    };
    for (int64_t factor = 2; multiple > 1 && isTooLarge(multiple); ++factor)
      while (multiple % factor == 0 && isTooLarge(multiple))
        multiple /= factor;
    if (column[0] < 0)
      multiple = -multiple;
    SizeCandidate symbol{.term = {.index = uint32_t(graph.sizeSymbols.size())},
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

  /// Fits the smallest size first, so that a multiple of another size becomes
  /// an expression of that size.
  void fitParameters() {
    std::vector<uint32_t> slots;
    for (uint32_t i = 0; i < graph.slots.size(); ++i)
      if (graph.slots[i].kind == NumberSlot::Kind::ParameterSize &&
          !isFitted[i] && !isFittedBySize(graph.slots[i]))
        slots.push_back(i);
    std::ranges::stable_sort(slots, {}, [&](uint32_t i) {
      return graph.numberOf(graph.slots[i], graph.traces.front());
    });
    std::ranges::for_each(slots, [&](uint32_t i) { fitParameter(i); });
  }

  void fitParameter(uint32_t slot) {
    Column column = columnOf(graph.slots[slot]);
    std::optional<SizeExpression> value = fitDerived(column);
    if (!value)
      value = bounds.sizes.contains(graph.slots[slot].index)
                  ? fitBound(column)
                  : fitParameterSize(column, symbols, relations);
    if (!value && relations == Relations::Many)
      if (auto size = columns.computedSize(graph.slots[slot].node, column))
        value = SizeExpression::of(sizeTerm(*size));
    graph.slots[slot].value = value ? *value : addSymbol(slot, column);
  }

  /// Fits the numbers from which the sizes of gradients follow, and makes these
  /// sizes terms.
  void fitGradients(c10::ArrayRef<GradientSize> gradients) {
    for (const GradientSize &gradient : gradients) {
      if (!gradient.varies() && !isBounded(gradient))
        continue;
      for (uint32_t slot : gradient.slots())
        if (!isFitted[slot])
          fitGradientNumber(slot);
      if (fitDerived(gradient.values))
        continue;
      SizeExpression size = expressionOf(gradient, graph.slots, graph.derived);
      if (size.isConstant())
        continue;
      if (size.isTerm()) {
        derived.push_back({size.product[0], gradient.values});
        continue;
      }
      derived.push_back({.term = {.kind = SizeTerm::Kind::Derived,
                                  .index = uint32_t(graph.derived.size())},
                         .values = gradient.values});
      graph.derived.push_back(std::move(size));
    }
  }

  /// Whether the gradient's size follows from a constant size that bounds it.
  bool isBounded(const GradientSize &gradient) const {
    return std::ranges::any_of(gradient.slots(), [&](uint32_t slot) {
      return graph.slots[slot].kind == NumberSlot::Kind::ParameterSize &&
             bounds.sizes.contains(graph.slots[slot].index);
    });
  }

  void fitGradientNumber(uint32_t slot) {
    isFitted[slot] = true;
    if (graph.slots[slot].kind == NumberSlot::Kind::ParameterSize)
      return fitParameter(slot);
    Column column = columnOf(graph.slots[slot]);
    if (isConstant(column) &&
        !bounds.integers.contains(graph.slots[slot].index))
      graph.slots[slot].value = SizeExpression::constant(column[0]);
    else if (auto value = fitBound(column))
      graph.slots[slot].value = *value;
    else
      graph.slots[slot].value = addSymbol(slot, column);
  }

  /// Returns the size of a gradient with these values if there is one.
  std::optional<SizeExpression> fitDerived(const Column &column) const {
    for (const SizeCandidate &size : derived)
      if (size.values == column)
        return SizeExpression::of(size.term);
    return std::nullopt;
  }

  /// Returns the symbol, or the size of a gradient, with these values if there
  /// is one: tensors that are indexed together have the same bound.
  std::optional<SizeExpression> fitBound(const Column &column) const {
    if (auto value = fitDerived(column))
      return value;
    for (const SizeCandidate &symbol : symbols)
      if (valuesOf(symbol) == column)
        return sizeOf(symbol);
    return std::nullopt;
  }

  SizeExpression sizeOf(const SizeCandidate &symbol) const {
    return SizeExpression::of(symbol.term,
                              graph.sizeSymbols[symbol.term.index].multiple);
  }

  /// The values of the number that is the symbol times its multiple.
  Column valuesOf(const SizeCandidate &symbol) const {
    Column values = symbol.values;
    for (int64_t &value : values)
      value *= graph.sizeSymbols[symbol.term.index].multiple;
    return values;
  }

  /// Fits the varying sizes of parameters, the sizes that views infer, and the
  /// varying integers of arguments in the order of their values. Each number
  /// can be a term of the expressions that follow.
  void fitBySize() {
    std::vector<std::pair<int64_t, uint32_t>> bySize;
    for (uint32_t i = 0; i < graph.slots.size(); ++i) {
      if (isFitted[i] || !isFittedBySize(graph.slots[i]))
        continue;
      Column column = columnOf(graph.slots[i]);
      int64_t size = std::accumulate(column.begin(), column.end(), int64_t(0));
      bySize.emplace_back(order == NumberOrder::FromSmallest ? size : -size, i);
    }
    std::ranges::sort(bySize);
    for (auto [size, i] : bySize) {
      Column column = columnOf(graph.slots[i]);
      auto value = fitArgument(column, {}, others, arguments);
      if (!value) {
        value = addSymbol(i, column);
        others.push_back(symbols.back());
      } else if (!value->isTerm() && others.size() < kMaxCandidates) {
        SizeTerm term{.kind = SizeTerm::Kind::Derived,
                      .index = uint32_t(graph.derived.size())};
        graph.derived.push_back(*value);
        others.push_back({term, column});
        value = SizeExpression::of(term);
      }
      graph.slots[i].value = *value;
    }
  }

  /// Whether `fitBySize` fits the slot instead of `fitParameters` or
  /// `fitNodes`.
  bool isFittedBySize(const NumberSlot &slot) const {
    if (order == NumberOrder::Nodes)
      return false;
    if (slot.kind == NumberSlot::Kind::Integer)
      return columns.integerVaries(slot.index);
    return columns.varies(slot.index) &&
           (slot.kind == NumberSlot::Kind::ParameterSize ||
            isInferredSize(*graph.base, slot));
  }

  void fitNodes() {
    uint32_t slot = 0;
    for (uint32_t i = 0; i < graph.base->nodes.size(); ++i) {
      std::optional<std::vector<std::vector<SizeCandidate>>> operands;
      for (; slot < graph.slots.size() && graph.slots[slot].node == i; ++slot) {
        NumberSlot &number = graph.slots[slot];
        if (number.kind == NumberSlot::Kind::ParameterSize || isFitted[slot] ||
            isFittedBySize(number))
          continue;
        Column column = columnOf(number);
        if (!operands)
          operands = columns.operandSizes(graph.base->nodes[i]);
        std::optional<SizeExpression> value =
            isKnownLength(slot, *operands)
                ? SizeExpression::of(sizeTerm(number.index))
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

  /// Whether the integer is the step of a slice: the op's last argument.
  bool isStep(const NumberSlot &number) const {
    const SnapshotNode &node = graph.base->nodes[number.node];
    return node.record->shapeRule == ShapeRule::sliceShape &&
           number.place + 1 == node.attributes->words.size();
  }

  /// Whether the slot is the length of a slice whose start and end follow from
  /// other sizes, or a padded length whose pad follows from other sizes. Such a
  /// length needs no expression.
  bool isKnownLength(uint32_t slot,
                     c10::ArrayRef<std::vector<SizeCandidate>> operands) const {
    const NumberSlot &length = graph.slots[slot];
    if (length.kind != NumberSlot::Kind::ResultSize ||
        hasSizesFromScalars(graph.base->nodes[length.node]))
      return false;
    bool isPad = parts.isPadded(length);
    bool areFound = true;
    for (const NumberSlot &other : graph.slots)
      if (other.node == length.node &&
          other.kind == NumberSlot::Kind::Integer && areFound &&
          !isFittedBySize(other) && !isStep(other) &&
          (!isPad || parts.otherPad(length, columnOf(other))))
        areFound = bool(fitArgument(columnOf(other), operands, others,
                                    std::min(arguments, Relations::Some)));
    return areFound;
  }

  std::optional<SizeExpression>
  fitNumber(const NumberSlot &number, const Column &column,
            c10::ArrayRef<std::vector<SizeCandidate>> operands) const {
    if (number.kind == NumberSlot::Kind::Integer)
      if (auto value = fitViewedSize(number, column))
        return value;
    if (auto windows = parts.fitWindows(number, column, operands))
      return windows;
    if (boundsVary >= Bounds::Equal && isConstant(column))
      if (auto bound = fitBound(column))
        return bound;
    if (number.kind == NumberSlot::Kind::Integer &&
        bounds.integers.contains(number.index))
      return fitBound(column);
    bool isPaddedLength = number.kind == NumberSlot::Kind::ResultSize &&
                          parts.isPadded(number) &&
                          !columns.varies(number.index);
    if (isPaddedLength && boundsVary != Bounds::Constant)
      return std::nullopt; // a symbol
    auto value = fitArgument(column, operands, others, arguments);
    if (value || number.kind != NumberSlot::Kind::Integer)
      return value;
    return parts.isPadded(number) ? parts.fitPad(number, column)
                                  : parts.fitEnd(number, column);
  }

  /// Returns the expression of an integer that follows from the sizes of a view
  /// whose parts vary.
  std::optional<SizeExpression> fitViewedSize(const NumberSlot &number,
                                              const Column &column) const {
    if (auto viewed = bounds.viewedSizes.find(number.index);
        viewed != bounds.viewedSizes.end()) {
      SizeExpression quotient;
      for (uint32_t size : viewed->second.sizes)
        quotient.product.push_back(sizeTerm(size));
      quotient.divisor = viewed->second.divisor;
      return quotient;
    }
    if (bounds.integers.contains(number.index))
      for (uint32_t size : bounds.computedSizes)
        if (size < columns.firstSize(number.node) &&
            columns.sizes(size) == column)
          return SizeExpression::of(sizeTerm(size));
    return std::nullopt;
  }

  /// Makes the node's sizes available to the expressions of later arguments.
  void addSizes(uint32_t position) {
    for (uint32_t i = columns.firstSize(position);
         i < columns.endOfSizes(position); ++i) {
      if (others.size() >= kMaxCandidates)
        return;
      auto candidate = columns.varying(i);
      if (candidate &&
          std::ranges::none_of(others, [&](const SizeCandidate &other) {
            return other.values == candidate->values;
          }))
        others.push_back(*candidate);
    }
  }

  /// Orders the symbols by the sum of their values, which is lower for a symbol
  /// that is below another one in all traces. Stand-ins grow with the symbol's
  /// index, and a slice's end, an index or a diagonal's length must stay below
  /// the size that bounds it.
  void orderSymbols() {
    std::vector<uint32_t> order(symbols.size());
    std::iota(order.begin(), order.end(), 0);
    std::ranges::stable_sort(order, {}, [&](uint32_t i) {
      const Column &values = symbols[i].values;
      return std::accumulate(values.begin(), values.end(), int64_t(0));
    });
    graph.reorderSymbols(order);
  }

  GeneralGraph &graph;
  TraceColumns columns;
  PartNumbers parts;
  Relations relations;
  Relations arguments;
  bool asMultiples;
  Bounds boundsVary;
  NumberOrder order;
  SliceBounds bounds;
  std::vector<bool> isFitted; // by slot: whether `fitGradients` fitted it
  std::vector<SizeCandidate> symbols, derived, others;
};

} // namespace torch_ltc

GeneralGraphPtr GeneralGraph::generalize(GraphSnapshotPtr base,
                                         std::vector<TraceNumbers> traces,
                                         std::string &reason,
                                         size_t mostSymbols) {
  TORCH_CHECK(traces.size() > 1, "Generalizing needs at least two traces.");
  for (const TraceNumbers &trace : traces)
    if (trace.skeleton != traces.front().skeleton) {
      reason = "the traces differ in more than sizes";
      return nullptr;
    }
  if (traces.size() > kMaxTraces)
    traces.erase(traces.begin(), traces.end() - kMaxTraces);
  reason.clear();
  std::set<Bounds> withoutEffect;
  // The first one whose stand-ins aren't suitable, or with too many symbols.
  GeneralGraphPtr unsuitable;
  auto attempt = [&](Bounds boundsVary, bool asMultiples, Relations relations,
                     Relations arguments,
                     NumberOrder order =
                         NumberOrder::Nodes) -> std::shared_ptr<GeneralGraph> {
    if (withoutEffect.contains(boundsVary))
      return nullptr;
    auto graph = std::shared_ptr<GeneralGraph>(new GeneralGraph(base, traces));
    bool hasBounds = Generalization(*graph, relations, arguments, asMultiples,
                                    boundsVary, order)
                         .run();
    if (!hasBounds && boundsVary == Bounds::Operands)
      withoutEffect.insert(Bounds::Operands);
    else if (!hasBounds && boundsVary != Bounds::Constant)
      withoutEffect.insert({Bounds::Equal, Bounds::All, Bounds::Size});
    std::string why = graph->findStandIns();
    if (why.empty() && graph->isSuitable &&
        graph->symbols().size() <= mostSymbols)
      return graph;
    if (why.empty() && !unsuitable)
      unsuitable = graph;
    if (reason.empty())
      reason = why;
    return nullptr;
  };
  // The most general form is tried first; `reason` says why it fails.
  constexpr std::pair<Relations, Relations> efforts[] = {
      {Relations::Few, Relations::Few},
      {Relations::Few, Relations::Some},
      {Relations::Many, Relations::Some},
      {Relations::Many, Relations::Many}};
  constexpr Bounds allBounds[] = {Bounds::Equal, Bounds::All, Bounds::Size,
                                  Bounds::Constant, Bounds::Operands};
  for (Bounds boundsVary : allBounds)
    for (bool asMultiples : {false, true})
      for (auto [relations, arguments] : efforts)
        if (auto graph = attempt(boundsVary, asMultiples, relations, arguments))
          return graph;
  // Try again with equality as the only relation between arguments and sizes:
  // other relations (for example, between a random start and a size) may hold
  // in two traces by coincidence and be impossible at other sizes.
  for (Bounds boundsVary : allBounds)
    if (auto graph = attempt(boundsVary, /*asMultiples=*/false, Relations::Few,
                             Relations::Equal))
      return graph;
  for (NumberOrder order :
       {NumberOrder::FromSmallest, NumberOrder::FromLargest})
    for (Bounds boundsVary : {Bounds::Equal, Bounds::All, Bounds::Constant})
      for (auto [relations, arguments] : {efforts[1], efforts[3]})
        if (auto graph = attempt(boundsVary, /*asMultiples=*/false, relations,
                                 arguments, order))
          return graph;
  return unsuitable;
}

GeneralGraphPtr GeneralGraph::refine(TraceNumbers trace,
                                     std::string &reason) const {
  std::vector<TraceNumbers> all = traces;
  all.push_back(std::move(trace));
  return generalize(base, std::move(all), reason);
}
