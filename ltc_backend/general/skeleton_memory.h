//===- skeleton_memory.h - Remembers skeletons and numbers ------*- C++ -*-===//
//
// A graph without a program has either a new skeleton or a known one with new
// numbers. The numbers of such graphs are remembered. Two or more graphs with
// the same skeleton determine a general graph, which a later graph fits or
// corrects. Graphs of different functions may have the same skeleton, with
// other relations between the numbers; then the skeleton has several general
// graphs. If sizes are marked as dynamic, one graph is enough: the numbers of
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

/// A graph's numbers, and the general graph that it fits, if any.
struct Sighting {
  /// The general graph whose instance at `values` is the graph. Null if no
  /// general graph of the skeleton fits.
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

  /// Looks up the skeleton of `traced`, and remembers the numbers if no general
  /// graph fits them.
  Sighting note(const GraphSnapshotPtr &traced);
  /// Tries to make a general graph that also fits the graphs noted since the
  /// last attempt, and binds it to the numbers of `sighting`. Takes as long as
  /// inferring the graph's shapes several times.
  void generalize(Sighting &sighting);
  /// Forgets a general graph that has no program, so that its graphs may
  /// determine others.
  void reject(const GeneralGraph &general);
  void clear();

private:
  struct Known {
    GeneralGraphPtr general;
    /// The traces from which it was made, without predicted ones
    /// (predicted_traces.h).
    std::shared_ptr<const std::vector<TraceNumbers>> traces;
  };
  struct Entry {
    Hash128 skeleton;
    GraphSnapshotPtr base;
    std::vector<Known> known; // most recently made first
    /// The traces of the graphs that no general graph fits.
    std::vector<TraceNumbers> pending;
    /// The last traces that no general graph fitted when they were noted. Only
    /// for small graphs.
    std::vector<TraceNumbers> recent;
    bool isChanged = false; // whether `pending` changed since the last attempt
    /// Whether `known.front()` can't be extended to `pending`.
    bool isApart = false;
    std::vector<Hash128> rejected; // general graphs without a program
    size_t failures = 0;           // of `makeGeneral`
    size_t pairs = 0;              // that were tried
  };

  /// Returns a copy of the skeleton's entry. A new entry has `graph` as its
  /// base.
  Entry lookUp(const GraphSnapshotPtr &graph, const TraceNumbers &numbers);
  std::optional<Entry> find(const Hash128 &skeleton);
  void store(const Entry &changed);
  /// Makes a general graph from these traces. Returns null and sets `reason` if
  /// there is none, or if it has no program.
  static GeneralGraphPtr makeGeneral(Entry &entry,
                                     std::vector<TraceNumbers> traces,
                                     std::string &reason);
  static void add(Entry &entry, GeneralGraphPtr general,
                  std::vector<TraceNumbers> traces);
  static bool extend(Entry &entry, std::string &reason);
  static bool addOfPair(Entry &entry);
  static bool addOfPending(Entry &entry, std::string &reason);

  std::mutex mutex;
  std::list<Entry> entries; // most recently used first
  std::unordered_map<Hash128, std::list<Entry>::iterator, Hash128Hasher>
      bySkeleton;
  size_t numOps = 0;
};

} // namespace torch_ltc

#endif // TORCH_LTC_GENERAL_SKELETON_MEMORY_H
