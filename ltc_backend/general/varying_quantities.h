//===- varying_quantities.h - Sizes that depend on symbols ------*- C++ -*-===//
//
// The numbers that a program's ops compute from sizes: sizes, and the element
// counts of some of a value's dims, by which the gradient of a mean over these
// dims is divided.
//
//===----------------------------------------------------------------------===//

#ifndef TORCH_LTC_GENERAL_VARYING_QUANTITIES_H
#define TORCH_LTC_GENERAL_VARYING_QUANTITIES_H

#include "general/general_graph.h"

#include <map>

namespace torch_ltc {

/// The sizes and products of sizes of a general graph's values that depend on
/// its symbols. Those that are equal at all stand-ins are one quantity.
class VaryingQuantities {
public:
  /// Throws c10::Error if the graph can't be instantiated at its stand-ins.
  explicit VaryingQuantities(const GeneralGraph &general);

  /// The quantity that size `dim` of `value` is; none for a constant.
  std::optional<size_t> find(ResultRef value, size_t dim) const;
  /// The values of all quantities in a graph with the same skeleton.
  std::vector<int64_t> valuesIn(const GraphSnapshot &graph) const;

private:
  struct Place {
    ResultRef value;
    uint64_t dims; // a bit for each dim
  };
  using Values = std::vector<int64_t>; // at the stand-ins
  static int64_t numberAt(const GraphSnapshot &graph, const Place &place);

  std::vector<Place> places; // of each quantity
  std::map<Values, size_t> byValues;
  /// The quantity of each size, by value and dim; none for constants.
  std::map<std::pair<uint32_t, uint32_t>, std::vector<std::optional<size_t>>>
      bySize;
};

} // namespace torch_ltc

#endif // TORCH_LTC_GENERAL_VARYING_QUANTITIES_H
