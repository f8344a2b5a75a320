//===- trace_columns.cpp - Numbers of several traces, by position ---------===//

#include "general/trace_columns.h"

#include <algorithm>

using namespace torch_ltc;

TraceColumns::TraceColumns(const GraphSnapshot &base,
                           const std::vector<TraceNumbers> &traces)
    : base(base), traces(traces) {
  uint32_t next = 0;
  for (const SnapshotNode &node : base.nodes) {
    firstSizes.push_back(next);
    for (const torch::lazy::Shape &shape : node.shapes)
      next += uint32_t(shape.dim());
  }
}

Column TraceColumns::sizes(uint32_t size) const {
  Column column;
  for (const TraceNumbers &trace : traces)
    column.push_back(trace.sizes[size]);
  return column;
}

std::optional<SizeCandidate> TraceColumns::varying(uint32_t size) const {
  SizeCandidate candidate{.term = {.kind = SizeTerm::Kind::Size, .index = size},
                          .values = sizes(size)};
  bool differs = std::ranges::any_of(candidate.values, [&](int64_t value) {
    return value != candidate.values[0];
  });
  return differs ? std::optional(candidate) : std::nullopt;
}

Column TraceColumns::integers(uint32_t integer) const {
  Column column;
  for (const TraceNumbers &trace : traces)
    column.push_back(trace.integers[integer]);
  return column;
}

bool TraceColumns::integerVaries(uint32_t integer) const {
  return std::ranges::any_of(traces, [&](const TraceNumbers &trace) {
    return trace.integers[integer] != traces.front().integers[integer];
  });
}

uint32_t TraceColumns::firstSize(ResultRef result) const {
  uint32_t first = firstSizes[result.position];
  for (uint32_t k = 0; k < result.index; ++k)
    first += uint32_t(base.nodes[result.position].shapes[k].dim());
  return first;
}

uint32_t TraceColumns::endOfSizes(size_t position) const {
  return position + 1 < firstSizes.size()
             ? firstSizes[position + 1]
             : uint32_t(traces.front().sizes.size());
}

uint32_t TraceColumns::operandSize(const SnapshotNode &node,
                                   uint32_t dim) const {
  return firstSize(base.operands[node.firstOperand]) + dim;
}

std::vector<std::vector<SizeCandidate>>
TraceColumns::operandSizes(const SnapshotNode &node) const {
  std::vector<std::vector<SizeCandidate>> result;
  for (uint32_t i = 0; i < node.numOperands; ++i) {
    ResultRef operand = base.operands[node.firstOperand + i];
    std::vector<SizeCandidate> &sizes = result.emplace_back();
    for (uint32_t d = 0; d < base.shape(operand).dim(); ++d)
      if (auto candidate = varying(firstSize(operand) + d))
        sizes.push_back(*candidate);
  }
  return result;
}

std::optional<uint32_t> TraceColumns::computedSize(size_t position,
                                                   const Column &values) const {
  for (size_t i = 0; i < position; ++i)
    if (base.nodes[i].record)
      for (uint32_t size = firstSize(i); size < endOfSizes(i); ++size)
        if (sizes(size) == values)
          return size;
  return std::nullopt;
}
