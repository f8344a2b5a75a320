//===- program_cache.h - Loaded programs by hash ----------------*- C++ -*-===//

#ifndef TORCH_LTC_PROGRAMS_PROGRAM_CACHE_H
#define TORCH_LTC_PROGRAMS_PROGRAM_CACHE_H

#include "graph/graph_difference.h"
#include "programs/program.h"

#include <functional>

namespace torch_ltc {

/// The program for `hash`, null if memory doesn't have it.
ProgramPtr findProgram(const Hash128 &hash);

/// The program for `hash`, by `make` if memory doesn't have it. Threads that
/// need the same new program wait for one of them to make it.
ProgramPtr findOrMakeProgram(const Hash128 &hash,
                             const std::function<ProgramPtr()> &make,
                             bool &wasInMemory);

/// Puts the compiled program in the place of the placeholder called `name`, if
/// that is still there.
void replacePlaceholder(const Hash128 &hash, const std::string &name,
                        const ProgramPtr &program);

/// All programs in memory.
std::vector<ProgramPtr> loadedPrograms();
void clearPrograms();

/// The last programs that were made, with their graphs, for the debug
/// interface (option keep_programs).
struct KeptProgram {
  GraphSnapshotPtr graph;
  ProgramPtr program;
  NodeSignatures signatures; // of the graph
};
void keepProgram(KeptProgram program);
/// Throws with a sentence if the program isn't kept.
KeptProgram keptProgram(const std::string &name);
/// The kept graph that shares most nodes with a graph, null if there is none.
GraphSnapshotPtr nearestKeptGraph(const NodeSignatures &signatures);

} // namespace torch_ltc

#endif // TORCH_LTC_PROGRAMS_PROGRAM_CACHE_H
