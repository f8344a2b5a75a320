//===- general_maker.h - Programs for all sizes -----------------*- C++ -*-===//
//
// When programs for all sizes are made, and from which graphs.
//
//===----------------------------------------------------------------------===//

#ifndef TORCH_LTC_COMPILATION_GENERAL_MAKER_H
#define TORCH_LTC_COMPILATION_GENERAL_MAKER_H

#include "events/step_log.h"
#include "general/skeleton_memory.h"
#include "programs/program.h"

namespace torch_ltc {

class InterpretedProgram;

/// Compares the graph with earlier ones that differ only in sizes, unless
/// option varying_sizes is off.
Sighting noteSizes(const GraphSnapshotPtr &graph);

/// The program for all sizes, bound to those of the graph; null if there is
/// none. Adds what is known about the sizes to `event`.
ProgramPtr bindGeneral(const GraphSnapshotPtr &graph, const Sighting &sighting,
                       CompileEvent &event);

/// Tier compile: makes the program for all sizes, if the graph is the second of
/// its skeleton, and binds it.
ProgramPtr makeAndBindGeneral(const GraphSnapshotPtr &graph, Sighting &sighting,
                              CompileEvent &event);

/// For a graph that runs outside of steps: the same in any tier, as an
/// executable that the caller owns.
LtcExecutable bindApart(const GraphSnapshotPtr &graph);

/// Tier auto: starts to compile the program for all sizes once the programs of
/// such graphs have run for long enough; `next` is the one that runs now.
void noteGeneralReuse(const GraphSnapshotPtr &graph, Sighting &sighting,
                      const std::shared_ptr<InterpretedProgram> &next,
                      CompileEvent &event);

} // namespace torch_ltc

#endif // TORCH_LTC_COMPILATION_GENERAL_MAKER_H
