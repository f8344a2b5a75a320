//===- idle_processor.h - Whether a processor is idle -----------*- C++ -*-===//

#ifndef TORCH_LTC_COMPILATION_IDLE_PROCESSOR_H
#define TORCH_LTC_COMPILATION_IDLE_PROCESSOR_H

#include "torch_ltc-c/processor_times.h"

namespace torch_ltc {

/// Whether all processes together left one of this process's processors mostly
/// idle between two samples.
bool leftProcessorIdle(const LtcProcessorTimes &before,
                       const LtcProcessorTimes &after);

/// Whether a processor was mostly idle between the last two samples. A call
/// takes a sample, which costs some 50 us, if the last one is at least a tenth
/// of a second old. Returns false before the second sample, and if the system
/// doesn't provide the times. Thread-safe.
bool hasIdleProcessor();

/// Whether other processes left `numThreads` processors mostly idle between the
/// last two samples. Thread-safe.
bool hasProcessorsFor(int numThreads);

} // namespace torch_ltc

#endif // TORCH_LTC_COMPILATION_IDLE_PROCESSOR_H
