//===- general_programs.h - One executable for all sizes --------*- C++ -*-===//

#ifndef TORCH_LTC_COMPILATION_GENERAL_PROGRAMS_H
#define TORCH_LTC_COMPILATION_GENERAL_PROGRAMS_H

#include "general/skeleton_memory.h"
#include "programs/program.h"

#include <list>

namespace torch_ltc {

class PlaceholderProgram;

/// A general graph at each sample's stand-ins: the compiler's input.
struct GeneralSamples {
  GeneralGraphPtr general;
  std::vector<GraphSnapshot> graphs;
  std::vector<TraceNumbers> numbers;
  std::vector<std::vector<int64_t>> checked; ///< all numbers of each sample

  /// Throws c10::Error if the graph can't be instantiated at its stand-ins.
  explicit GeneralSamples(GeneralGraphPtr general);
};

/// The executables of general graphs. Thread-safe.
class GeneralPrograms {
public:
  static GeneralPrograms &get();

  enum class State {
    Unknown,   ///< hasn't been requested
    Pending,   ///< being compiled
    Ready,     ///< `bind` may succeed
    Impossible ///< there is no executable for all sizes
  };
  /// Changes the state from Unknown to Pending; returns false in other states.
  bool begin(const GeneralGraph &general);
  /// The hash of the general graph and the current options, which is the key of
  /// its executable in the disk cache.
  static Hash128 hashOf(const GeneralGraph &general);
  /// Stores the compiled executable; throws std::runtime_error if it can't be
  /// loaded.
  void store(const GeneralGraph &general, const char *data, size_t size);
  /// Changes the state to Impossible.
  void fail(const GeneralGraph &general);
  /// The general graph whose executable has this name; null if there is none.
  GeneralGraphPtr find(const std::string &name);
  /// Changes the state back to Unknown, so that the program may be requested
  /// again.
  void abandon(const GeneralGraph &general);

  /// Binds the general executable of `sighting` to the traced graph. Returns
  /// null if it isn't ready, or, with the reason, if it isn't valid for the
  /// graph.
  ProgramPtr bind(const GraphSnapshotPtr &graph, const Sighting &sighting,
                  std::string &reason);
  /// Like the overload above, but returns the bound executable, which the
  /// caller owns.
  LtcExecutable bind(const Sighting &sighting, std::string &reason);

  /// Whether `bind` may succeed for a graph with this skeleton.
  bool isReady(const Hash128 &skeleton);

  // The functions below sum the time that programs of a skeleton have run op by
  // op. `noteNew` and `noteRuns` return the seconds since the last
  // `startAgain`.

  /// Adds the time of the program that the previous call passed as `next`.
  double noteNew(const Hash128 &skeleton,
                 const std::shared_ptr<PlaceholderProgram> &next);
  double noteRuns(const Hash128 &skeleton, PlaceholderProgram &program);
  void startAgain(const Hash128 &skeleton);

  /// Whether the program for all sizes is being made, or about to be made, in
  /// the background.
  bool isBeingMade(const Hash128 &skeleton);
  void setBeingMade(const Hash128 &skeleton, bool isBeingMade);
  void clear();

private:
  /// What is known about the programs of a skeleton.
  struct Use {
    double seconds = 0;
    bool isBeingMade = false;
    std::weak_ptr<PlaceholderProgram> last;
  };
  struct Entry;
  /// Most recently used first.
  template <typename T> using Recent = std::list<std::pair<Hash128, T>>;

  std::shared_ptr<Entry> entryOf(const GeneralGraph &general);
  Use &useOf(const Hash128 &skeleton);

  std::mutex mutex;
  Recent<std::shared_ptr<Entry>> entries;
  Recent<Use> uses;
};

} // namespace torch_ltc

#endif // TORCH_LTC_COMPILATION_GENERAL_PROGRAMS_H
