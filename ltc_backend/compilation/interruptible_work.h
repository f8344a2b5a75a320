//===- interruptible_work.h - Work that Ctrl-C can interrupt ----*- C++ -*-===//
//
// Python runs signal handlers on its main thread, between Python instructions.
// A compilation on that thread would delay the handlers until it ends. So
// compilations run on a second thread while the main thread waits and calls the
// handlers.
//
//===----------------------------------------------------------------------===//

#ifndef TORCH_LTC_COMPILATION_INTERRUPTIBLE_WORK_H
#define TORCH_LTC_COMPILATION_INTERRUPTIBLE_WORK_H

#include <functional>

namespace torch_ltc {

/// Runs `work`, which must not throw, and returns when it is done. On the main
/// thread, throws as soon as a signal handler raises; `work`, which must own
/// everything it uses, then continues in the background.
void runInterruptibly(std::function<void()> work);

/// Waits until all interrupted work is done.
void waitForInterruptedWork();

} // namespace torch_ltc

#endif // TORCH_LTC_COMPILATION_INTERRUPTIBLE_WORK_H
