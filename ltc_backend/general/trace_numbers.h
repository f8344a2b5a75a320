//===- trace_numbers.h - A graph's skeleton and its numbers -----*- C++ -*-===//
//
// A graph consists of a skeleton and of numbers that may differ between traces
// of one Python program:
//
//   skeleton   ops, operands, dtypes, ranks, which parameters are donatable;
//              all arguments except integers and texts that may follow from
//              sizes; which sizes are 0 or 1, because these decide how operands
//              are broadcast; which integers are -1, 0, 1 (which aren't special
//              for positions, such as a slice's start) or a sentinel like the
//              largest int64, and the signs of all other integers; sizes that
//              are marked as static
//   numbers    sizes of all values, and those integers, in trace order
//
// The op table says which integers may differ (`ArgumentSpec::followsSizes`).
//
//===----------------------------------------------------------------------===//

#ifndef TORCH_LTC_GENERAL_TRACE_NUMBERS_H
#define TORCH_LTC_GENERAL_TRACE_NUMBERS_H

#include "graph/graph.h"

namespace torch_ltc {

struct TraceNumbers {
  Hash128 skeleton;
  /// Sizes of all nodes' results, concatenated. Graphs with the same skeleton
  /// have the same number of sizes, at the same positions; likewise for
  /// `integers`.
  std::vector<int64_t> sizes;
  /// Integers of arguments that aren't part of the skeleton.
  std::vector<int64_t> integers;

  /// The sizes, followed by the integers.
  std::vector<int64_t> all() const {
    std::vector<int64_t> result = sizes;
    result.insert(result.end(), integers.begin(), integers.end());
    return result;
  }

  bool operator==(const TraceNumbers &) const = default;
};

TraceNumbers numbersOf(const GraphSnapshot &graph);

/// Returns the graph with an open end for each slice that ends beyond its
/// operand: `x[:50]` of 20 rows and `x[:50]` of 90 rows get different
/// skeletons, each of which generalizes to other sizes.
GraphSnapshotPtr withOpenEnds(const GraphSnapshotPtr &graph);

/// The numbers of the graph with open ends, which general graphs have.
inline TraceNumbers generalNumbersOf(const GraphSnapshotPtr &graph) {
  return numbersOf(*withOpenEnds(graph));
}

/// Whether this integer of an argument is part of the skeleton.
inline bool isStructural(const ArgumentSpec &spec, int64_t number) {
  constexpr int64_t largest = int64_t(1) << 48;
  return (number < spec.lowest && number > -spec.lowest) || number >= largest ||
         number <= -largest;
}

/// Calls `visit(spec, position)` for each word of an op's arguments that isn't
/// part of the skeleton. `position` is the word's index in `words`.
template <typename F>
void forEachFollowingWord(const OpRecord &record, c10::ArrayRef<Word> words,
                          F visit) {
  AttributeReader reader(words);
  for (const ArgumentSpec &spec : record.arguments) {
    Attribute attribute = reader.next();
    if (!spec.followsSizes ||
        (attribute.tag != Tag::integer && attribute.tag != Tag::integers))
      continue;
    size_t count = attribute.tag == Tag::integer ? 1 : attribute.count;
    for (size_t i = 0; i < count; ++i)
      if (!isStructural(spec, attribute.payload[i]))
        visit(spec, size_t(attribute.payload - words.begin()) + i);
  }
}

/// Whether the sizes of the op's results depend on dynamic scalars, so that no
/// shape rule can derive them.
bool hasSizesFromScalars(const SnapshotNode &node);

} // namespace torch_ltc

#endif // TORCH_LTC_GENERAL_TRACE_NUMBERS_H
