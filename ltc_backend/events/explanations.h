//===- explanations.h - Log messages for events -----------------*- C++ -*-===//
//
// Rate-limited: the first event of an op and line is logged at level info; the
// 10th, 100th, ... as a warning, because by then it is part of a loop. Reads
// warn once.
//
//===----------------------------------------------------------------------===//

#ifndef TORCH_LTC_EVENTS_EXPLANATIONS_H
#define TORCH_LTC_EVENTS_EXPLANATIONS_H

#include "events/call_log.h"
#include "events/step_log.h"
#include "source/source_location.h"

namespace torch_ltc {

/// A read with ops of a step before and after it. Counts the reads of each line
/// itself.
void explainSync(const CallLogRow &event);
/// `calls`: number of calls of this op and line so far.
void explainFallback(const CallLogRow &event, int64_t calls);
/// Parameters of a new program that aren't overwritten in place, and why.
void explainUndonated(
    const std::vector<std::pair<std::string, std::string>> &names,
    LocationId location);
/// Counts the programs of each line itself.
void explainCompilation(const CompileEvent &event);

} // namespace torch_ltc

#endif // TORCH_LTC_EVENTS_EXPLANATIONS_H
