//===- general_maker.h - Programs for all sizes -----------------*- C++ -*-===//
//
// Decides when programs for all sizes are made, and from which graphs.
//
//===----------------------------------------------------------------------===//

#ifndef TORCH_LTC_COMPILATION_GENERAL_MAKER_H
#define TORCH_LTC_COMPILATION_GENERAL_MAKER_H

#include "events/step_log.h"
#include "general/skeleton_memory.h"
#include "programs/program.h"

#include <atomic>
#include <memory>

namespace torch_ltc {

class PlaceholderProgram;

/// Returns what is known about the graph's skeleton, and remembers the graph's
/// sizes if they are new. If option varying_sizes is off, does nothing and
/// returns an empty Sighting.
Sighting noteSizes(const GraphSnapshotPtr &graph);

/// The program for all sizes, bound to the graph's sizes; null if there is
/// none. Adds what is known about the sizes to `event`.
ProgramPtr bindGeneral(const GraphSnapshotPtr &graph, const Sighting &sighting,
                       CompileEvent &event);

/// Makes the program for all sizes, if enough graphs of its skeleton are known,
/// and binds it to the graph. Returns null if too few are known, if the program
/// was requested before, or if it can't be made or bound.
ProgramPtr makeAndBindGeneral(const GraphSnapshotPtr &graph, Sighting &sighting,
                              CompileEvent &event);

/// Like `makeAndBindGeneral`, for a graph that runs outside of steps; also
/// binds a program that was made before. Returns an executable that the caller
/// owns, or null.
LtcExecutable bindApart(const GraphSnapshotPtr &graph);

// In tier auto, the program for all sizes is compiled once the placeholders of
// a skeleton's graphs have run for long enough, whether the sizes are new or
// repeat.

/// Starts to compile the program for all sizes if the placeholders have run for
/// long enough. To be called for each graph without a program. `next`: the
/// graph's placeholder.
void noteNewSizes(const GraphSnapshotPtr &graph, Sighting &sighting,
                  const std::shared_ptr<PlaceholderProgram> &next,
                  CompileEvent &event);

/// State of the replacement of a placeholder by the program for all sizes.
enum class Binding { None, Pending, Failed };

/// A graph with a placeholder.
struct KnownSizes {
  GraphSnapshotPtr graph;
  Hash128 hash, skeleton;
  CompileEvent event;
  std::shared_ptr<std::atomic<Binding>> state =
      std::make_shared<std::atomic<Binding>>(Binding::None);
};

/// Starts to replace `program`, the graph's placeholder, by the program for all
/// sizes if that program is ready or worth compiling. To be called when
/// `program` runs again. Returns whether the background thread will try to
/// replace `program`.
bool noteKnownSizes(const KnownSizes &known, PlaceholderProgram &program);

} // namespace torch_ltc

#endif // TORCH_LTC_COMPILATION_GENERAL_MAKER_H
