//===- program_maker.h - A program for a new graph --------------*- C++ -*-===//

#ifndef TORCH_LTC_COMPILATION_PROGRAM_MAKER_H
#define TORCH_LTC_COMPILATION_PROGRAM_MAKER_H

#include "programs/program.h"

#include <functional>
#include <string>

namespace torch_ltc {

/// From the disk cache, or compiled; enters it in the compile log. `origin`
/// becomes "disk" or "compiled". Throws c10::Error with one sentence.
ProgramPtr makeProgram(GraphSnapshot graph, const Hash128 &hash, int64_t step,
                       LocationId location, std::string &origin);

/// While option dump is set: the folder that shows `program`, whatever its
/// origin; "" if it can't be written. A program that wasn't compiled under the
/// option is lowered once more for its texts. Asks for `snapshot` only then.
std::string ensureDumped(const Program &program, int64_t step,
                         LocationId location,
                         const std::function<GraphSnapshot()> &snapshot);

/// Option `dump` for a graph that runs outside of steps: compiled once more for
/// its texts, unless it lies there already.
void ensureTracedDumped(const GraphSnapshot &graph);

} // namespace torch_ltc

#endif // TORCH_LTC_COMPILATION_PROGRAM_MAKER_H
