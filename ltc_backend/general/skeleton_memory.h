//===- skeleton_memory.h - Skeletons that were seen -------------*- C++ -*-===//
//
// A graph without a program either has a new skeleton or is another graph of a
// known one. The numbers of such graphs are remembered. Two or more of them
// determine a general graph, which a later graph fits or corrects. If sizes are
// marked as dynamic, one is enough: the others are predicted.
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
  /// The general graph, of which the graph is the instance at `values`. Null if
  /// there is none yet, or if it doesn't fit.
  GeneralGraphPtr general;
  SymbolValues values;
  TraceNumbers numbers; ///< of the graph
  /// Why the graph doesn't fit, or why there is no general one.
  std::string reason;
};

/// Thread-safe. Remembers the most recently used skeletons.
class SkeletonMemory {
public:
  static SkeletonMemory &get();

  Sighting note(const GraphSnapshotPtr &traced);
  /// Makes a general graph that also fits the graphs that were noted since the
  /// last attempt, and fits `sighting` to it. Takes as long as inferring the
  /// graph's shapes several times.
  void generalize(Sighting &sighting);
  void clear();

private:
  struct Entry {
    Hash128 skeleton;
    GraphSnapshotPtr base;
    GeneralGraphPtr general;
    /// Numbers of graphs that it doesn't fit, and of those from which it was
    /// made.
    std::vector<TraceNumbers> traces;
    /// Those of `general` that no graph has had (predicted_traces.h).
    std::vector<TraceNumbers> predicted;
    bool isChanged = false; // traces, since the last attempt to find one
    size_t attempts = 0;
  };

  /// A copy; `graph` is the base of a new one.
  Entry lookUp(const GraphSnapshotPtr &graph, const TraceNumbers &numbers);
  std::optional<Entry> find(const Hash128 &skeleton);
  void store(const Entry &changed);
  static GeneralGraphPtr makeGeneral(Entry &entry, std::string &reason);

  std::mutex mutex;
  std::list<Entry> entries; // most recently used first
  std::unordered_map<Hash128, std::list<Entry>::iterator, Hash128Hasher>
      bySkeleton;
  size_t numOps = 0;
};

} // namespace torch_ltc

#endif // TORCH_LTC_GENERAL_SKELETON_MEMORY_H
