//===- program_maker.h - A program for a new graph --------------*- C++ -*-===//

#ifndef TORCH_LTC_COMPILATION_PROGRAM_MAKER_H
#define TORCH_LTC_COMPILATION_PROGRAM_MAKER_H

#include "programs/program.h"

#include <functional>
#include <string>

namespace torch_ltc {

/// Loads the program from the disk cache or compiles it, and adds a row to the
/// compile log. Sets `origin` to "disk" or "compiled". Throws c10::Error with a
/// one-sentence message.
ProgramPtr makeProgram(GraphSnapshot graph, const Hash128 &hash, int64_t step,
                       LocationId location, std::string &origin);

/// If option dump is set: the folder with the dump of `program`, whatever its
/// origin; "" if it can't be written. A program that was compiled without the
/// option is lowered once more for its texts. Only calls `snapshot` in this
/// case.
std::string ensureDumped(const Program &program, int64_t step,
                         LocationId location,
                         const std::function<GraphSnapshot()> &snapshot);

/// Option `dump` for a graph that runs outside of steps: compiled once more for
/// its texts, unless the dump already exists.
void ensureTracedDumped(const GraphSnapshot &graph);

} // namespace torch_ltc

#endif // TORCH_LTC_COMPILATION_PROGRAM_MAKER_H
