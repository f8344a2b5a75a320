//===- explanations.h - Log messages for events -----------------*- C++ -*-===//
//
// The first fallback of an op at a line is logged at level info, and the 10th,
// 100th, ... as a warning, because by then the line is part of a loop. Only the
// first and the 10th read are logged. The 10th, 100th, ... program of a line is
// logged as a warning, the others at level info unless they run op by op.
//
//===----------------------------------------------------------------------===//

#ifndef TORCH_LTC_EVENTS_EXPLANATIONS_H
#define TORCH_LTC_EVENTS_EXPLANATIONS_H

#include "events/call_log.h"
#include "events/step_log.h"
#include "source/source_location.h"

namespace torch_ltc {

/// Explains a read in the middle of a step. Counts the reads of each op and
/// line.
void explainSync(const CallLogRow &event);
/// Explains a fallback. `calls`: number of calls of this op and line so far.
void explainFallback(const CallLogRow &event, int64_t calls);
/// Explains which parameters of a new program aren't overwritten in place, and
/// why. `names`: their names, each with the reason.
void explainUndonated(
    const std::vector<std::pair<std::string, std::string>> &names,
    LocationId location);
/// Explains why a new program was needed. Counts the programs of each line.
void explainCompilation(const CompileEvent &event);

} // namespace torch_ltc

#endif // TORCH_LTC_EVENTS_EXPLANATIONS_H
