//===- resized_graph.h - A graph at different sizes -------------*- C++ -*-===//
//
// Rebuilds the nodes of a graph, one after the other, with new sizes of its
// parameters and new integer arguments. The shapes of results are inferred
// again, by the same rules as when an op is traced.
//
//===----------------------------------------------------------------------===//

#ifndef TORCH_LTC_GENERAL_RESIZED_GRAPH_H
#define TORCH_LTC_GENERAL_RESIZED_GRAPH_H

#include "graph/graph.h"

#include <ATen/core/Tensor.h>

namespace torch_ltc {

class ResizedGraph {
public:
  explicit ResizedGraph(const GraphSnapshot &base);

  void setParameterSize(size_t parameter, size_t dim, int64_t size);
  void setResultSize(size_t position, size_t result, size_t dim, int64_t size);
  void setWords(size_t position, std::vector<Word> words);
  /// Infers the shapes of a node whose operands are finished. Throws c10::Error
  /// if the op rejects its operands' shapes, or if a size becomes 0 or 1.
  void inferShapes(size_t position);
  /// Makes the node available to its users.
  void finish(size_t position);

  const GraphSnapshot &graph() const { return changed; }
  /// Sizes of all finished nodes, as in `TraceNumbers::sizes`.
  const std::vector<int64_t> &sizes() const { return finishedSizes; }
  GraphSnapshot take() { return std::move(changed); }

private:
  /// Infers the shape of a slice whose start or end is a dynamic scalar. The
  /// slice's length doesn't follow from the operands: `setResultSize` has set
  /// it.
  void inferPart(SnapshotNode &node);
  /// Infers the result's shape for an op that writes a slice whose start or end
  /// is a dynamic scalar (`slice_scatter`, `slice_backward`), or such a
  /// diagonal.
  void inferWhole(SnapshotNode &node);
  void inferOp(SnapshotNode &node);

  const GraphSnapshot &base;
  GraphSnapshot changed;
  std::vector<DynamicScalar> scalars;
  std::vector<std::vector<at::Tensor>> values;
  std::vector<int64_t> finishedSizes;
};

} // namespace torch_ltc

#endif // TORCH_LTC_GENERAL_RESIZED_GRAPH_H
