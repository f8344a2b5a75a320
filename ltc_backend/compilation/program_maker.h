//===- program_maker.h - A program for a new graph --------------*- C++ -*-===//

#ifndef TORCH_LTC_COMPILATION_PROGRAM_MAKER_H
#define TORCH_LTC_COMPILATION_PROGRAM_MAKER_H

#include "programs/program.h"

#include <functional>
#include <string>

namespace torch_ltc {

/// Makes the program of a new graph: binds a program for all sizes, loads the
/// program from the disk cache, compiles or interprets it. Adds a row to the
/// compile log, and sets `origin` to "bound", "disk", "compiled" or
/// "interpreted". Throws c10::Error with a one-sentence message.
/// `isRecorded`: whether a captured step is being recorded; then tier `auto`
/// compiles a program for all sizes at once, because replays need it.
ProgramPtr makeProgram(GraphSnapshot graph, const Hash128 &hash, int64_t step,
                       LocationId location, std::string &origin,
                       bool isRecorded = false);

/// Returns the folder with the dump of `program`, or "" if it can't be written.
/// Requires option `dump`. If there is no dump (for example, because the
/// program was compiled without the option), calls `snapshot` and lowers the
/// graph again for its texts.
std::string ensureDumped(const Program &program, int64_t step,
                         LocationId location,
                         const std::function<GraphSnapshot()> &snapshot);

/// If option `dump` is set, dumps a graph that runs outside of steps: compiles
/// it again for its texts, unless the dump already exists.
void ensureTracedDumped(const GraphSnapshot &graph);

} // namespace torch_ltc

#endif // TORCH_LTC_COMPILATION_PROGRAM_MAKER_H
