//===- skeleton_memory.h - Remembers skeletons and numbers ------*- C++ -*-===//
//
// A graph without a program has either a new skeleton or a known one with new
// numbers. The numbers of such graphs are remembered. Two or more graphs with
// the same skeleton determine a general graph, which a later graph fits or
// corrects. If sizes are marked as dynamic, one graph is enough: the numbers of
// further graphs are predicted.
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
  /// The general graph whose instance at `values` is the graph. Null if the
  /// skeleton has none yet, or none that fits.
  GeneralGraphPtr general;
  SymbolValues values;
  TraceNumbers numbers; ///< of the graph
  /// Why the graph doesn't fit the general graph, or why there is none.
  std::string reason;
};

/// Thread-safe. Remembers the most recently used skeletons.
class SkeletonMemory {
public:
  static SkeletonMemory &get();

  /// Looks up the skeleton of `traced`, and remembers the numbers if they don't
  /// fit its general graph.
  Sighting note(const GraphSnapshotPtr &traced);
  /// Tries to make a general graph that also fits the graphs noted since the
  /// last attempt, and binds it to the numbers of `sighting`. Takes as long as
  /// inferring the graph's shapes several times.
  void generalize(Sighting &sighting);
  void clear();

private:
  struct Entry {
    Hash128 skeleton;
    GraphSnapshotPtr base;
    GeneralGraphPtr general;
    /// The traces for the next attempt: those of the graphs that `general`
    /// doesn't fit, and those from which it was made. Empty while all graphs
    /// fit.
    std::vector<TraceNumbers> traces;
    /// The traces of `general` that were predicted (predicted_traces.h).
    std::vector<TraceNumbers> predicted;
    bool isChanged = false; // whether `traces` changed since the last attempt
    size_t attempts = 0;
  };

  /// Returns a copy of the skeleton's entry. A new entry has `graph` as its
  /// base.
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
