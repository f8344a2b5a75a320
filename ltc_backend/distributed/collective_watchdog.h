//===- collective_watchdog.h - Collectives in a trace that pauses -*- C++ -*-=//
//
// A traced collective starts when its trace runs. A thread may stop tracing
// before that, and wait for something that another rank does after it has
// received the collective's data: for a file, a message of a queue, the end of
// a process. Both ranks would wait for each other for ever. So if a trace with
// collectives doesn't grow for `kPause`, the watchdog's thread runs it.
//
//===----------------------------------------------------------------------===//

#ifndef TORCH_LTC_DISTRIBUTED_COLLECTIVE_WATCHDOG_H
#define TORCH_LTC_DISTRIBUTED_COLLECTIVE_WATCHDOG_H

namespace torch_ltc {

/// To be called after a collective was traced.
void watchTracedCollectives();
/// Ends the watchdog's thread.
void shutDownCollectiveWatchdog();

} // namespace torch_ltc

#endif // TORCH_LTC_DISTRIBUTED_COLLECTIVE_WATCHDOG_H
