//===- idle_processor.h - Whether a processor is idle -----------*- C++ -*-===//

#ifndef TORCH_LTC_COMPILATION_IDLE_PROCESSOR_H
#define TORCH_LTC_COMPILATION_IDLE_PROCESSOR_H

#include "torch_ltc-c/processor_times.h"

namespace torch_ltc {

/// Whether all processes together left one of this process's processors mostly
/// idle between two samples.
bool leftProcessorIdle(const LtcProcessorTimes &before,
                       const LtcProcessorTimes &after);

/// Whether a processor was mostly idle since an earlier call, which was a tenth
/// of a second ago or longer. False for the first call, and if the system
/// doesn't provide the times. Takes some 50 us at most every tenth of a second.
/// Thread-safe.
bool hasIdleProcessor();

/// Whether other processes leave `numThreads` processors mostly idle, judged by
/// the same samples. Thread-safe.
bool hasProcessorsFor(int numThreads);

} // namespace torch_ltc

#endif // TORCH_LTC_COMPILATION_IDLE_PROCESSOR_H
