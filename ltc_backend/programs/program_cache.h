//===- program_cache.h - Loaded programs by hash ----------------*- C++ -*-===//

#ifndef TORCH_LTC_PROGRAMS_PROGRAM_CACHE_H
#define TORCH_LTC_PROGRAMS_PROGRAM_CACHE_H

#include "graph/graph_difference.h"
#include "programs/program.h"

#include <functional>

namespace torch_ltc {

/// The program for `hash`; null if it isn't in memory.
ProgramPtr findProgram(const Hash128 &hash);

/// The program for `hash`, created by `make` if it isn't in memory. Of several
/// threads that need the same new program, one creates it and the others wait.
ProgramPtr findOrMakeProgram(const Hash128 &hash,
                             const std::function<ProgramPtr()> &make,
                             bool &wasInMemory);

/// Replaces the placeholder called `name` by the compiled program, if the
/// placeholder is still in memory.
void replacePlaceholder(const Hash128 &hash, const std::string &name,
                        const ProgramPtr &program);

/// All programs in memory.
std::vector<ProgramPtr> loadedPrograms();
void clearPrograms();

/// One of the most recently created programs with its graph, for the debug
/// interface (option max_inspectable_programs).
struct RecentProgram {
  GraphSnapshotPtr graph;
  ProgramPtr program;
};
void addRecentProgram(RecentProgram program);
/// Throws c10::Error if the program isn't among them.
RecentProgram recentProgram(const std::string &name);
/// The graphs of these programs, oldest first.
std::vector<GraphSnapshotPtr> recentGraphs();

} // namespace torch_ltc

#endif // TORCH_LTC_PROGRAMS_PROGRAM_CACHE_H
