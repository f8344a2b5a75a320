//===- trace_columns.h - Numbers of several traces, by position -*- C++ -*-===//

#ifndef TORCH_LTC_GENERAL_TRACE_COLUMNS_H
#define TORCH_LTC_GENERAL_TRACE_COLUMNS_H

#include "general/size_expression.h"
#include "general/trace_numbers.h"

namespace torch_ltc {

/// The numbers in several traces of one skeleton. A size is identified by its
/// index in `TraceNumbers::sizes`, an integer by its index in
/// `TraceNumbers::integers`. Doesn't own the graph and the traces.
class TraceColumns {
public:
  /// `base`: the graph of one of the traces.
  TraceColumns(const GraphSnapshot &base,
               const std::vector<TraceNumbers> &traces);

  Column sizes(uint32_t size) const;
  /// The size with its values if these differ between traces, else none.
  std::optional<SizeCandidate> varying(uint32_t size) const;
  bool varies(uint32_t size) const { return varying(size).has_value(); }
  Column integers(uint32_t integer) const;
  bool integerVaries(uint32_t integer) const;

  /// The index of the first size of a node, or of one of its results.
  uint32_t firstSize(size_t position) const { return firstSizes[position]; }
  uint32_t firstSize(ResultRef result) const;
  /// The index after the last size of a node.
  uint32_t endOfSizes(size_t position) const;
  /// The index of size `dim` of the node's first operand.
  uint32_t operandSize(const SnapshotNode &node, uint32_t dim) const;
  /// For each operand, the sizes that differ between traces.
  std::vector<std::vector<SizeCandidate>>
  operandSizes(const SnapshotNode &node) const;

  /// A size of a result that an op before the node at `position` computes and
  /// that has these values, if there is one. A layer after `flatten` has as
  /// many input features as the flattened dimension has elements.
  std::optional<uint32_t> computedSize(size_t position,
                                       const Column &values) const;

private:
  const GraphSnapshot &base;
  const std::vector<TraceNumbers> &traces;
  std::vector<uint32_t> firstSizes; // by node: the index of its first size
};

} // namespace torch_ltc

#endif // TORCH_LTC_GENERAL_TRACE_COLUMNS_H
