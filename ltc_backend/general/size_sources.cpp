//===- size_sources.cpp - Where the size of a value comes from ------------===//

#include "general/size_sources.h"

#include <cstdlib>

using namespace torch_ltc;

/// Returns the operand's dimension that dimension `dim` of a result comes from,
/// as far as the shapes show: the same one or, if the result has a different
/// shape, the nearest dimension of the same size, counted from the last
/// dimension.
static std::optional<uint32_t> sameSize(const torch::lazy::Shape &from,
                                        const torch::lazy::Shape &to,
                                        uint32_t dim) {
  if (from.dim() == to.dim() && from.size(dim) == to.size(dim))
    return dim;
  const int64_t likely = int64_t(dim) + from.dim() - to.dim();
  std::optional<uint32_t> nearest;
  for (int64_t d = 0; d < from.dim(); ++d)
    if (from.size(d) == to.size(dim) &&
        (!nearest || std::abs(d - likely) < std::abs(*nearest - likely)))
      nearest = uint32_t(d);
  return nearest;
}

std::optional<std::pair<ResultRef, uint32_t>>
torch_ltc::sourceOfSize(const GraphSnapshot &base, ResultRef ref,
                        uint32_t dim) {
  const SnapshotNode &node = base.nodes[ref.position];
  auto operands = c10::ArrayRef<ResultRef>(base.operands)
                      .slice(node.firstOperand, node.numOperands);
  for (ResultRef operand : operands)
    if (base.shape(operand).sizes() == base.shape(ref).sizes())
      return std::pair(operand, dim);
  for (ResultRef operand : operands)
    if (auto from = sameSize(base.shape(operand), base.shape(ref), dim))
      return std::pair(operand, *from);
  return std::nullopt;
}

std::optional<ViewedDims> torch_ltc::viewedDims(const GraphSnapshot &base,
                                                ResultRef ref, uint32_t dim) {
  const SnapshotNode &node = base.nodes[ref.position];
  if (!node.record || node.record->shapeRule != ShapeRule::viewShape ||
      base.shape(ref).numel() == 0)
    return std::nullopt;
  const ResultRef operand = base.operands[node.firstOperand];
  c10::ArrayRef<int64_t> from = base.shape(operand).sizes(),
                         to = base.shape(ref).sizes();
  size_t nextFrom = 0, nextTo = 0;
  while (nextFrom < from.size() && nextTo < to.size()) {
    const auto first = uint32_t(nextFrom);
    int64_t operandElements = from[nextFrom++], elements = to[nextTo++];
    while (operandElements != elements)
      if (operandElements < elements)
        operandElements *= from[nextFrom++];
      else
        elements *= to[nextTo++];
    if (dim < nextTo)
      return ViewedDims{.operand = operand,
                        .first = first,
                        .end = uint32_t(nextFrom),
                        .others = elements / to[dim]};
  }
  return std::nullopt;
}
