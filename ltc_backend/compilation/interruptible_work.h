//===- interruptible_work.h - Long work that Ctrl-C can leave ---*- C++ -*-===//
//
// Python runs signals' handlers on its main thread, between instructions of
// Python. A compilation on that thread would hold them back until its end.
//
//===----------------------------------------------------------------------===//

#ifndef TORCH_LTC_COMPILATION_INTERRUPTIBLE_WORK_H
#define TORCH_LTC_COMPILATION_INTERRUPTIBLE_WORK_H

#include <functional>

namespace torch_ltc {

/// Returns when `work`, which doesn't throw, is done. On the main thread it
/// throws as soon as a signal's handler raises something: `work`, which must
/// own all that it uses, then goes on by itself.
void runInterruptibly(std::function<void()> work);

/// Waits for work that was left.
void waitForInterruptedWork();

} // namespace torch_ltc

#endif // TORCH_LTC_COMPILATION_INTERRUPTIBLE_WORK_H
