//===- skeleton_memory.h - Skeletons that were seen -------------*- C++ -*-===//
//
// A graph without a program is either of a skeleton that is new, or the second
// of one, from which a general graph follows, or a later one, which the general
// graph fits or which corrects it.
//
//===----------------------------------------------------------------------===//

#ifndef TORCH_LTC_GENERAL_SKELETON_MEMORY_H
#define TORCH_LTC_GENERAL_SKELETON_MEMORY_H

#include "general/general_graph.h"

#include <list>
#include <mutex>
#include <unordered_map>

namespace torch_ltc {

/// What is known about a graph's skeleton.
struct Sighting {
  /// The graph is this one at `values`. Null at the first sight, and if the
  /// graphs that were seen have no general form.
  GeneralGraphPtr general;
  SymbolValues values;
  TraceNumbers numbers; ///< of the graph
  /// Why it was corrected, or why there is none; "" at the first sight.
  std::string reason;
};

/// Thread-safe. Remembers the skeletons that were used last.
class SkeletonMemory {
public:
  static SkeletonMemory &get();

  Sighting note(const GraphSnapshotPtr &graph);
  void clear();

private:
  struct Entry {
    Hash128 skeleton;
    GraphSnapshotPtr base;
    std::vector<TraceNumbers> traces; // while there is no general graph
    GeneralGraphPtr general;
    size_t attempts = 0; // to find one
  };

  /// Those of the entry, which is made for a new skeleton.
  Entry lookUp(const GraphSnapshotPtr &graph, const TraceNumbers &numbers,
               bool &isFirst);
  void store(const Entry &changed);

  std::mutex mutex;
  std::list<Entry> entries; // most recently used first
  std::unordered_map<Hash128, std::list<Entry>::iterator, Hash128Hasher>
      bySkeleton;
  size_t numOps = 0;
};

} // namespace torch_ltc

#endif // TORCH_LTC_GENERAL_SKELETON_MEMORY_H
