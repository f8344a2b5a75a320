//===- general_graph.cpp - One graph for all sizes ------------------------===//

#include "general/general_graph.h"

#include "general/trace_columns.h"
#include "torch_ltc-c/size_stand_ins.h"

#include <algorithm>
#include <limits>
#include <map>
#include <set>

using namespace torch_ltc;

std::optional<SymbolValues> GeneralGraph::bind(const TraceNumbers &numbers,
                                               std::string *reason) const {
  if (numbers.skeleton != skeleton()) {
    if (reason)
      *reason = "it differs in more than sizes";
    return std::nullopt;
  }
  SymbolValues values;
  values.reserve(sizeSymbols.size());
  for (const SizeSymbol &symbol : sizeSymbols) {
    const NumberSlot &slot = slots[symbol.slot];
    int64_t number = numberOf(slot, numbers);
    if (number % symbol.multiple != 0 ||
        number / symbol.multiple < symbol.lowest) {
      if (reason)
        *reason = explain(slot, number);
      return std::nullopt;
    }
    values.push_back(number / symbol.multiple);
    if (values.back() > largestValue(values.size() - 1, standInValues)) {
      if (reason)
        *reason = slotText(slot) + " is " + std::to_string(number) +
                  ", which is more than the program was made for";
      return std::nullopt;
    }
  }
  const std::vector<int64_t> derivedValues = valuesOfDerived(values);
  const TermValues terms{values, derivedValues, numbers.sizes};
  for (const NumberSlot &slot : slots) {
    int64_t number = numberOf(slot, numbers);
    if (slot.value.evaluate(terms) == number)
      continue;
    if (reason)
      *reason = explain(slot, number);
    return std::nullopt;
  }
  return values;
}

std::optional<SymbolValues> GeneralGraph::valuesOfSizes(
    c10::function_ref<std::optional<int64_t>(size_t parameter, size_t dim)>
        sizeOf,
    c10::ArrayRef<std::optional<int64_t>> others) const {
  SymbolValues values;
  for (uint32_t symbol = 0; symbol < sizeSymbols.size(); ++symbol) {
    const SizeExpression itself =
        SizeExpression::of({SizeTerm::Kind::Symbol, symbol});
    std::optional<int64_t> found;
    for (uint32_t i = 0; i < slots.size() && !found; ++i) {
      const NumberSlot &slot = slots[i];
      const bool isSource = i == sizeSymbols[symbol].slot;
      if (slot.kind != NumberSlot::Kind::ParameterSize ||
          !(isSource || slot.value == itself))
        continue;
      const int64_t multiple = isSource ? sizeSymbols[symbol].multiple : 1;
      std::optional<int64_t> size =
          sizeOf(base->nodes[slot.node].parameter, slot.place);
      if (size && *size % multiple == 0)
        found = *size / multiple;
    }
    if (!found && symbol < others.size())
      found = others[symbol];
    if (!found)
      return std::nullopt;
    values.push_back(*found);
  }
  return values;
}

std::vector<int64_t>
GeneralGraph::valuesOfDerived(c10::ArrayRef<int64_t> symbols) const {
  std::vector<int64_t> values;
  for (const SizeExpression &expression : derived) {
    std::optional<int64_t> value = expression.evaluate({symbols, values, {}});
    if (!value)
      break; // the terms that follow have no value either
    values.push_back(*value);
  }
  return values;
}

void GeneralGraph::reorderSymbols(c10::ArrayRef<uint32_t> order) {
  std::vector<SizeSymbol> ordered;
  std::vector<uint32_t> rank(order.size());
  for (uint32_t i = 0; i < order.size(); ++i) {
    ordered.push_back(sizeSymbols[order[i]]);
    rank[order[i]] = i;
  }
  sizeSymbols = std::move(ordered);
  auto rename = [&](SizeTerm &term) {
    if (term.kind == SizeTerm::Kind::Symbol)
      term.index = rank[term.index];
  };
  auto renameAll = [&](SizeExpression &value) {
    std::ranges::for_each(value.product, rename);
    if (value.quotient)
      rename(*value.quotient);
    if (value.addend)
      rename(*value.addend);
  };
  for (NumberSlot &slot : slots)
    renameAll(slot.value);
  std::ranges::for_each(derived, renameAll);
}

Hash128 GeneralGraph::hash() const {
  HashState state(11);
  state.add(skeleton());
  state.add(sizeSymbols.size());
  auto addTerm = [&](const SizeTerm &term) {
    state.add(uint64_t(term.index) << 2 | uint64_t(term.kind));
  };
  auto addExpression = [&](const SizeExpression &value) {
    for (int64_t number :
         {value.factor, value.divisor, value.summand, value.offset, value.sign})
      state.add(uint64_t(number));
    state.add(value.product.size() << 2 |
              size_t(value.quotient.has_value()) << 1 |
              size_t(value.addend.has_value()));
    for (const SizeTerm &term : value.product)
      addTerm(term);
    if (value.quotient)
      addTerm(*value.quotient);
    if (value.addend)
      addTerm(*value.addend);
  };
  for (const SizeExpression &value : derived)
    addExpression(value);
  for (const NumberSlot &slot : slots)
    addExpression(slot.value);
  for (const SymbolValues &values : standInValues)
    for (int64_t value : values)
      state.add(uint64_t(value));
  return state.finish();
}

std::vector<SymbolValues> GeneralGraph::standInsOf(size_t scale,
                                                   int64_t boundFactor,
                                                   bool onlyIfExceeded) const {
  std::vector<SymbolValues> vectors(LTC_GENERAL_SAMPLES);
  bool isExceeded = !onlyIfExceeded;
  for (size_t i = 0; i < sizeSymbols.size(); ++i) {
    // Each stand-in is larger than those of earlier symbols. If one of them is
    // scaled, all later ones must be, too.
    isExceeded |=
        sizeSymbols[i].most > ltcSizeStandIn(LTC_LARGE_STAND_INS, i, 0);
    for (size_t k = 0; k < LTC_GENERAL_SAMPLES; ++k)
      vectors[k].push_back(
          ltcSizeStandIn(isExceeded ? scale : LTC_LARGE_STAND_INS, i, k) +
          (sizeSymbols[i].isBound() ? boundFactor * LTC_BOUND_STAND_INS[k]
                                    : 0));
  }
  return vectors;
}

/// The number of elements, which may exceed an int64.
static double countOf(const torch::lazy::Shape &shape) {
  double count = 1;
  for (int64_t size : shape.sizes())
    count *= double(size);
  return count;
}

/// The number of pairs of a query and a key in an attention op, which the
/// compiler decomposes; 0 for other ops.
static double countPairs(const GraphSnapshot &graph, const SnapshotNode &node) {
  if (!node.record)
    return 0;
  size_t query = 0; // the operand that precedes the keys
  switch (node.record->shapeRule) {
  case ShapeRule::attentionShape:
  case ShapeRule::short_attentionShape:
    break;
  case ShapeRule::attention_backwardShape:
    query = 1;
    break;
  default:
    return 0;
  }
  auto shape = [&](size_t operand) -> const torch::lazy::Shape & {
    return graph.shape(graph.operands[node.firstOperand + operand]);
  };
  c10::ArrayRef<int64_t> queries = shape(query).sizes();
  c10::ArrayRef<int64_t> keys = shape(query + 1).sizes();
  return countOf(shape(query)) / double(queries.back()) *
         double(keys[keys.size() - 2]);
}

/// Whether the results have fewer than `maxCount` elements. The program of an
/// attention op has several buffers for all pairs, whose offsets are in bytes.
static bool hasCounts(const GraphSnapshot &graph, double maxCount) {
  return std::ranges::all_of(graph.nodes, [&](const SnapshotNode &node) {
    return 64 * countPairs(graph, node) < maxCount &&
           std::ranges::all_of(
               node.shapes,
               [&](const auto &shape) { return countOf(shape) < maxCount; });
  });
}

int64_t
GeneralGraph::largestValue(size_t symbol,
                           const std::vector<SymbolValues> &vectors) const {
  int64_t largest = std::numeric_limits<int64_t>::max();
  for (const SymbolValues &values : vectors)
    largest = std::min(largest, values[symbol]);
  return largest;
}

GeneralGraph::Quality
GeneralGraph::qualityOf(const std::vector<SymbolValues> &vectors,
                        std::string &why) const {
  Quality quality;
  std::vector<TraceNumbers> samples;
  try {
    for (const SymbolValues &values : vectors) {
      GraphSnapshot graph = instantiate(values, base->name);
      samples.push_back(numbersOf(graph));
      // Numbers with different signs may be lowered differently: for example,
      // padding and cropping are the same op.
      if (samples.back().skeleton != skeleton()) {
        why = "at large sizes, a number changes its sign";
        return {};
      }
      if (&values == &vectors.front())
        quality.hasCounts = hasCounts(graph, /*maxCount=*/0x1p53);
      quality.hasCounts &= hasCounts(graph, /*maxCount=*/0x1p62);
    }
  } catch (const c10::Error &error) {
    why = error.msg();
    return {};
  }
  for (size_t i = 0; i < sizeSymbols.size(); ++i)
    quality.coversTraces &= sizeSymbols[i].most <= largestValue(i, vectors);
  quality.leastSize = std::numeric_limits<int64_t>::max();
  const TraceColumns traced(*base, traces), sampled(*base, samples);
  std::map<Column, Column> tracedBySampled;
  for (uint32_t i = 0; i < samples[0].sizes.size(); ++i) {
    if (std::optional<SizeCandidate> size = sampled.varying(i)) {
      // A size that is the same in two samples, as a small quotient may be,
      // doesn't determine the numbers that are computed from it.
      if (std::set<int64_t>(size->values.begin(), size->values.end()).size() !=
          samples.size()) {
        why = "a size is too small at large sizes of the parameters";
        return {};
      }
      quality.leastSize =
          std::min(quality.leastSize, std::ranges::min(size->values));
      const Column ofTraces = traced.sizes(i);
      auto known = tracedBySampled.try_emplace(size->values, ofTraces).first;
      quality.hasDistinctSizes &= known->second == ofTraces;
    } else if (traced.varies(i)) {
      why = "at large sizes, a size that varies is a constant";
      return {};
    }
  }
  return quality;
}

std::string GeneralGraph::findStandIns() {
  std::string reason;
  Quality best;
  auto attempt = [&](size_t scale, int64_t boundFactor, bool onlyIfExceeded) {
    std::vector<SymbolValues> vectors =
        standInsOf(scale, boundFactor, onlyIfExceeded);
    std::string why;
    Quality quality = qualityOf(vectors, why);
    if (quality.leastSize > 0 && quality.isBetterThan(best)) {
      standInValues = std::move(vectors);
      isSuitable = quality.hasCounts && quality.coversTraces;
      best = quality;
    }
    if (reason.empty())
      reason = why;
    return isSuitable && best.hasDistinctSizes &&
           best.leastSize >= LTC_LARGE_SIZE;
  };
  bool hasBounds = std::ranges::any_of(sizeSymbols, &SizeSymbol::isBound);
  // With the factor 64, a bound exceeds products of two large stand-ins:
  // `x[:a * b].view(a, b)`.
  for (int64_t boundFactor : {1, 64, 0})
    for (size_t scale :
         {LTC_LARGE_STAND_INS, LTC_SPREAD_STAND_INS, LTC_HUGE_STAND_INS,
          LTC_VAST_STAND_INS, LTC_STEEP_STAND_INS}) {
      if (!hasBounds && boundFactor != 1)
        continue;
      if (attempt(scale, boundFactor, /*onlyIfExceeded=*/false))
        return "";
      if (best.coversTraces && !best.hasCounts &&
          attempt(scale, boundFactor, /*onlyIfExceeded=*/true))
        return "";
    }
  // If a constant bounds the symbols, only smaller stand-ins are possible. The
  // product of three symbols needs them even below a bound: `x[:a * b * c]`.
  // Products of five varying sizes, as in attention between the patches of
  // images, need them, too.
  for (int64_t boundFactor : {0, 64})
    for (size_t scale = LTC_STEEP_STAND_INS + 1;
         scale < LTC_STAND_IN_SCALES &&
         (best.leastSize == 0 || !best.hasCounts);
         ++scale)
      if (hasBounds || boundFactor == 0)
        attempt(scale, boundFactor, /*onlyIfExceeded=*/false);
  return best.leastSize > 0 ? "" : reason;
}

std::string GeneralGraph::slotText(const NumberSlot &slot) const {
  const SnapshotNode &node = base->nodes[slot.node];
  if (slot.kind == NumberSlot::Kind::ParameterSize) {
    const std::string &name = base->parameters[node.parameter].name;
    return "size " + std::to_string(slot.place) + " of parameter " +
           std::to_string(node.parameter) +
           (name.empty() ? "" : " (" + name + ")");
  }
  std::string op = node.record->name;
  if (std::string place = shortText(node.location); !place.empty())
    op += " at " + place;
  if (slot.kind == NumberSlot::Kind::ResultSize)
    return "size " + std::to_string(slot.place) + " of " + op;
  std::string argument;
  forEachFollowingWord(*node.record, node.attributes->words,
                       [&](const ArgumentSpec &spec, size_t position) {
                         if (position == slot.place)
                           argument = spec.name;
                       });
  return argument + " of " + op;
}

std::string GeneralGraph::termText(SizeTerm term) const {
  auto name = [this](SizeTerm inner) { return termText(inner); };
  if (term.kind == SizeTerm::Kind::Symbol)
    return "s" + std::to_string(term.index);
  if (term.kind == SizeTerm::Kind::Derived)
    return "(" + derived[term.index].text(name) + ")";
  uint32_t next = 0;
  for (const SnapshotNode &node : base->nodes)
    for (const torch::lazy::Shape &shape : node.shapes) {
      if (term.index >= next + uint32_t(shape.dim())) {
        next += uint32_t(shape.dim());
        continue;
      }
      for (const NumberSlot &slot : slots)
        if (slot.kind == NumberSlot::Kind::ParameterSize &&
            slot.index == term.index)
          return slot.value.text(name);
      return (node.record ? node.record->name
                          : "parameter " + std::to_string(node.parameter)) +
             ".size(" + std::to_string(term.index - next) + ")";
    }
  return "?";
}

std::string GeneralGraph::explain(const NumberSlot &slot,
                                  int64_t number) const {
  return slotText(slot) + " is " + std::to_string(number) +
         ", the program expects " +
         slot.value.text([this](SizeTerm term) { return termText(term); });
}

std::string GeneralGraph::symbolText(size_t symbol) const {
  const SizeSymbol &found = sizeSymbols[symbol];
  std::string number = slotText(slots[found.slot]);
  if (found.multiple != 1)
    number += " / " + std::to_string(found.multiple);
  return "s" + std::to_string(symbol) + " = " + number + ", " +
         std::to_string(found.least) + " to " + std::to_string(found.most);
}

std::string GeneralGraph::text() const {
  std::string result;
  for (size_t i = 0; i < sizeSymbols.size(); ++i)
    result += symbolText(i) + "\n";
  for (const NumberSlot &slot : slots)
    if (!slot.value.isConstant())
      result += slotText(slot) + ": " + slot.value.text([this](SizeTerm t) {
        return termText(t);
      }) + "\n";
  return result;
}

std::vector<ParameterSize> GeneralGraph::parameterSizes() const {
  std::vector<ParameterSize> result;
  for (const NumberSlot &slot : slots)
    if (slot.kind == NumberSlot::Kind::ParameterSize &&
        !slot.value.isConstant())
      result.push_back(
          {base->nodes[slot.node].parameter, slot.place,
           slot.value.text([this](SizeTerm term) { return termText(term); })});
  return result;
}
