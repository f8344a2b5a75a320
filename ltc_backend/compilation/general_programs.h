//===- general_programs.h - Programs for all sizes --------------*- C++ -*-===//
//
// Option `varying_sizes`: the second graph of a skeleton makes a general graph,
// which is compiled once; the program of each graph that it fits is that
// executable, bound to its sizes. Whatever has no general form is compiled for
// its sizes, as every program is without the option.
//
//===----------------------------------------------------------------------===//

#ifndef TORCH_LTC_COMPILATION_GENERAL_PROGRAMS_H
#define TORCH_LTC_COMPILATION_GENERAL_PROGRAMS_H

#include "events/step_log.h"
#include "general/skeleton_memory.h"
#include "programs/program.h"

namespace torch_ltc {

/// Compares the graph with earlier ones, and adds what it finds to `event`.
Sighting noteSizes(const GraphSnapshotPtr &graph, CompileEvent &event);

/// The program of `graph` from the general one. `wait`: compiles it now if that
/// wasn't done; otherwise it is compiled in the background, and null meanwhile.
/// Null too if there is none for these sizes.
ProgramPtr makeFromGeneral(const Sighting &sighting,
                           const GraphSnapshotPtr &graph, bool wait,
                           CompileEvent &event);

/// Drops the general programs, of which bound ones keep what they need.
void clearGeneralPrograms();

} // namespace torch_ltc

#endif // TORCH_LTC_COMPILATION_GENERAL_PROGRAMS_H
