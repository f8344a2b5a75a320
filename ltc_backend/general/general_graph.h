//===- general_graph.h - One graph for all sizes ----------------*- C++ -*-===//
//
// Graphs with the same skeleton are generalized to one graph, in which the
// numbers that differ are symbols or expressions of symbols.
//
//   trace 1: x f32[8, 20], view(x, 160)    generalized: x f32[s1, s0],
//   trace 2: x f32[4, 30], view(x, 120)                 view(x, s0*s1)
//
// `bind` reads the symbols' values from another graph and compares all numbers
// of that graph with the expressions, so a wrong expression is never used;
// `refine` fits the expressions again, also to the numbers of a graph that they
// didn't fit.
// `instantiate` makes the concrete graph for given values of the symbols; the
// shapes of results are inferred again, by the same rules as when an op is
// traced.
//
//===----------------------------------------------------------------------===//

#ifndef TORCH_LTC_GENERAL_GENERAL_GRAPH_H
#define TORCH_LTC_GENERAL_GENERAL_GRAPH_H

#include "general/size_expression.h"
#include "general/trace_numbers.h"

#include <c10/util/FunctionRef.h>

#include <memory>

namespace torch_ltc {

/// A number that may differ between graphs with the same skeleton.
struct NumberSlot {
  enum class Kind : uint8_t {
    ParameterSize,
    ResultSize, ///< a size that no shape rule can derive, or the length of a
                ///< slice or pad
    Integer     ///< an integer among an op's arguments
  };
  Kind kind;
  uint32_t node;
  /// The number's index in `TraceNumbers::sizes` or `TraceNumbers::integers`.
  uint32_t index;
  /// For a size, `result` and `place` are its result and dimension; for an
  /// integer, `place` is its position among the node's words.
  uint32_t result = 0;
  uint32_t place;
  int64_t lowest = 2; ///< the lowest absolute value (see isStructural)
  SizeExpression value = {};
};

/// A symbol with the slot from which its value is read: the slot's number is
/// `multiple` times the symbol's value.
struct SizeSymbol {
  uint32_t slot;
  /// Negative if the slot's number is negative. The absolute value is above 1
  /// if the general graph is only valid for multiples of that value.
  int64_t multiple = 1;
  int64_t least, most; // smallest and largest value in the traces
  int64_t lowest = 2;  // the lowest valid value

  /// Whether the symbol is a constant size that bounds slices of varying
  /// lengths.
  bool isBound() const { return least == most; }
};

using SymbolValues = std::vector<int64_t>;

/// A varying size of a parameter, as an expression of symbols.
struct ParameterSize {
  size_t parameter, dim;
  std::string text; // "s0", "2*s0 + 1"
};

class GeneralGraph;
using GeneralGraphPtr = std::shared_ptr<const GeneralGraph>;

class GeneralGraph : public std::enable_shared_from_this<GeneralGraph> {
public:
  /// Maximum number of traces that are compared; the most recent are kept. Each
  /// wrong guess adds a trace.
  static constexpr size_t kMaxTraces = 6;

  /// Makes the general graph of two or more graphs: `traces` contains the
  /// numbers of each graph, and `base` is one of the graphs. Returns null and
  /// sets `reason` if the skeletons differ or no general graph fits all graphs.
  /// Prefers the most general form with at most `mostSymbols` symbols; returns
  /// a form with more if there is no other.
  static GeneralGraphPtr generalize(GraphSnapshotPtr base,
                                    std::vector<TraceNumbers> traces,
                                    std::string &reason,
                                    size_t mostSymbols = SIZE_MAX);
  /// Generalizes again with one more trace, and leaves out the oldest one if
  /// there are more than kMaxTraces.
  GeneralGraphPtr refine(TraceNumbers trace, std::string &reason) const;

  /// Numbers of the most recent traces.
  const std::vector<TraceNumbers> &numbers() const { return traces; }
  /// A hash of everything that `instantiate` depends on, stable across
  /// processes.
  Hash128 hash() const;
  const std::vector<SizeSymbol> &symbols() const { return sizeSymbols; }
  std::vector<ParameterSize> parameterSizes() const;
  const Hash128 &skeleton() const { return traces.front().skeleton; }

  /// Returns the values of the symbols at which `instantiate` makes the graph
  /// with `numbers`. If there are no such values, returns none and sets
  /// `reason`.
  std::optional<SymbolValues> bind(const TraceNumbers &numbers,
                                   std::string *reason = nullptr) const;
  /// Returns the values of the symbols at which the parameters have these
  /// sizes; `sizeOf` returns none if a size isn't known. A symbol that no size
  /// determines has its value in `others`. Returns none if a symbol has no
  /// value. Other numbers aren't checked.
  std::optional<SymbolValues> valuesOfSizes(
      c10::function_ref<std::optional<int64_t>(size_t parameter, size_t dim)>
          sizeOf,
      c10::ArrayRef<std::optional<int64_t>> others) const;
  /// Returns the graph at these values, with the name `name`. Throws c10::Error
  /// if there is no such graph, because sizes don't match or a size becomes 0
  /// or 1.
  GraphSnapshot instantiate(c10::ArrayRef<int64_t> values,
                            std::string name) const;
  /// Vectors of symbol values at which the graph exists. The graph is compiled
  /// for each vector, and the resulting executables are compared. Each symbol
  /// has a different value in each vector; the remainders of the values differ
  /// as well (size_stand_ins.h).
  const std::vector<SymbolValues> &standIns() const { return standInValues; }

  /// A text with one line for each symbol and each number that is an
  /// expression.
  std::string text() const;
  /// Describes a symbol: "s0 = size 1 of parameter 0 (ids), 16 to 128".
  std::string symbolText(size_t symbol) const;

private:
  friend class Generalization;
  GeneralGraph(GraphSnapshotPtr base, std::vector<TraceNumbers> traces)
      : base(std::move(base)), traces(std::move(traces)) {}

  /// The values of `derived` at these values of the symbols, up to the first
  /// that can't be computed.
  std::vector<int64_t> valuesOfDerived(c10::ArrayRef<int64_t> symbols) const;
  /// Renames the symbols: symbol `order[i]` becomes symbol i.
  void reorderSymbols(c10::ArrayRef<uint32_t> order);
  std::string slotText(const NumberSlot &slot) const;
  std::string termText(SizeTerm term) const;
  std::string explain(const NumberSlot &slot, int64_t number) const;
  int64_t numberOf(const NumberSlot &slot, const TraceNumbers &trace) const {
    return slot.kind == NumberSlot::Kind::Integer ? trace.integers[slot.index]
                                                  : trace.sizes[slot.index];
  }
  /// How suitable vectors of stand-ins are.
  struct Quality {
    /// The smallest value of the sizes that differ between the vectors; 0 if
    /// the graph doesn't exist at one of the vectors.
    int64_t leastSize = 0;
    /// Whether doubles represent the element counts of all results exactly at
    /// the first vector, and whether the counts at the others, which are only
    /// rounded, are distant from the limit of int64.
    bool hasCounts = true;
    /// Whether no size of the traces exceeds its symbol's stand-ins. A program
    /// is only valid for sizes up to these.
    bool coversTraces = true;
    /// Whether sizes that differ in a trace also differ at one of the vectors.
    /// Otherwise, these don't show from which of the sizes a number is
    /// computed: two quotients of similar sizes may be equal at all vectors.
    bool hasDistinctSizes = true;

    bool isBetterThan(const Quality &other) const {
      if (other.leastSize == 0)
        return true;
      if (coversTraces != other.coversTraces)
        return coversTraces;
      if (hasCounts != other.hasCounts)
        return hasCounts;
      if (hasDistinctSizes != other.hasDistinctSizes)
        return hasDistinctSizes;
      return leastSize > 2 * other.leastSize;
    }
  };
  /// Symbols that bound slices have stand-ins larger by `boundFactor` times
  /// LTC_BOUND_STAND_INS. If `onlyIfExceeded`, symbols that don't need the
  /// scale have smaller stand-ins: a varying batch of long signals has fewer
  /// elements then.
  std::vector<SymbolValues> standInsOf(size_t scale, int64_t boundFactor,
                                       bool onlyIfExceeded) const;
  /// The largest value of the symbol for which the stand-ins are valid.
  int64_t largestValue(size_t symbol,
                       const std::vector<SymbolValues> &vectors) const;
  /// Rates `vectors`. If they can't be used, returns a `leastSize` of 0 and
  /// sets `why` to the reason.
  Quality qualityOf(const std::vector<SymbolValues> &vectors,
                    std::string &why) const;
  /// Sets `standInValues` and `isSuitable`. Returns why there are no stand-ins,
  /// or "".
  std::string findStandIns();

  GraphSnapshotPtr base;
  std::vector<TraceNumbers> traces;
  std::vector<NumberSlot> slots; // in the order of nodes
  std::vector<SizeSymbol> sizeSymbols;
  /// The derived terms: expressions of symbols and preceding derived terms.
  std::vector<SizeExpression> derived;
  std::vector<SymbolValues> standInValues;
  /// Whether the stand-ins cover the traces and have exact counts. Without
  /// exact counts, the division of a mean has no general form.
  bool isSuitable = false;
};

} // namespace torch_ltc

#endif // TORCH_LTC_GENERAL_GENERAL_GRAPH_H
