//===- traced_place.cpp - Source of a traced op ---------------------------===//
//
// Autograd numbers its nodes in the order of their forward ops, and creates a
// node just before it runs the op's kernel. So node n belongs to the first op
// that is traced after number n was assigned.
//
//===----------------------------------------------------------------------===//

#include "source/traced_place.h"

#include <ATen/SequenceNumber.h>
#include <torch/csrc/autograd/function.h>

#include <unordered_map>

using namespace torch_ltc;

namespace {

// `placeOfNode` is cleared when it reaches this size; the nodes of older graphs
// then have no place.
constexpr size_t kMaxTracedPlaces = 1 << 17;
thread_local std::unordered_map<uint64_t, TracedPlace> placeOfNode;

} // namespace

TracedPlace torch_ltc::tracedPlace() {
  TracedPlace place;
  bool isKnown = false;
  if (auto node = torch::autograd::get_current_node()) {
    auto found = placeOfNode.find(node->sequence_nr());
    isKnown = found != placeOfNode.end();
    if (isKnown)
      place = found->second;
  }
  if (!isKnown)
    place = {captureLocation(), currentModulePath()};
  if (uint64_t next = at::sequence_number::peek()) {
    if (placeOfNode.size() >= kMaxTracedPlaces)
      placeOfNode.clear();
    placeOfNode.emplace(next - 1, place);
  }
  return place;
}
