//===- varying_quantities.cpp - Sizes that depend on symbols --------------===//

#include "general/varying_quantities.h"

#include <algorithm>

using namespace torch_ltc;

/// Of values with a higher rank, only the sizes are quantities.
static constexpr size_t kMaxRankOfProducts = 5;

VaryingQuantities::VaryingQuantities(const GeneralGraph &general) {
  std::vector<GraphSnapshot> samples;
  for (const SymbolValues &values : general.standIns())
    samples.push_back(general.instantiate(values, ""));
  auto add = [&](Place place) -> std::optional<size_t> {
    Values values;
    for (const GraphSnapshot &sample : samples)
      values.push_back(numberAt(sample, place));
    if (std::ranges::all_of(
            values, [&](int64_t value) { return value == values.front(); }))
      return std::nullopt;
    auto [found, isNew] = byValues.try_emplace(values, places.size());
    if (isNew)
      places.push_back(place);
    return found->second;
  };
  const GraphSnapshot &first = samples.front();
  for (uint32_t position = 0; position < first.nodes.size(); ++position)
    for (uint32_t i = 0; i < first.nodes[position].shapes.size(); ++i) {
      const ResultRef value{position, i};
      auto &quantities = bySize[{position, i}];
      const size_t rank = size_t(first.shape(value).dim());
      for (size_t dim = 0; dim < rank; ++dim)
        quantities.push_back(add({value, uint64_t(1) << dim}));
      if (rank <= kMaxRankOfProducts)
        for (uint64_t dims = 3; dims < uint64_t(1) << rank; ++dims)
          add({value, dims});
    }
}

int64_t VaryingQuantities::numberAt(const GraphSnapshot &graph,
                                    const Place &place) {
  uint64_t product = 1; // may overflow at the stand-ins
  c10::ArrayRef<int64_t> sizes = graph.shape(place.value).sizes();
  for (size_t dim = 0; dim < sizes.size(); ++dim)
    if (place.dims >> dim & 1)
      product *= uint64_t(sizes[dim]);
  return int64_t(product);
}

std::optional<size_t> VaryingQuantities::find(ResultRef value,
                                              size_t dim) const {
  return bySize.at({value.position, value.index}).at(dim);
}

std::vector<int64_t>
VaryingQuantities::valuesIn(const GraphSnapshot &graph) const {
  std::vector<int64_t> values;
  for (const Place &place : places)
    values.push_back(numberAt(graph, place));
  return values;
}
