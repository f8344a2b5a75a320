//===- interruptible_work.h - Work that Ctrl-C can interrupt ----*- C++ -*-===//
//
// Python runs signal handlers on its main thread, between instructions of
// Python. A compilation on that thread would delay them until its end.
//
//===----------------------------------------------------------------------===//

#ifndef TORCH_LTC_COMPILATION_INTERRUPTIBLE_WORK_H
#define TORCH_LTC_COMPILATION_INTERRUPTIBLE_WORK_H

#include <functional>

namespace torch_ltc {

/// Returns when `work`, which must not throw, is done. On the main thread it
/// throws as soon as a signal handler raises; `work`, which must own everything
/// it uses, then continues in the background.
void runInterruptibly(std::function<void()> work);

/// Waits for abandoned work.
void waitForInterruptedWork();

} // namespace torch_ltc

#endif // TORCH_LTC_COMPILATION_INTERRUPTIBLE_WORK_H
