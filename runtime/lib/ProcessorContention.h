//===- ProcessorContention.h - Contention with other processes ------------===//
//
// The members of an OpenMP team spin while they wait for each other: for some
// milliseconds with libgomp's default policy (GCC 12), unless the process has
// more OpenMP threads than processors; then they sleep almost at once. Spinning
// is right if the team has its processors to itself, because waking a sleeping
// member takes longer than most commands. If another process (a DataLoader's
// worker, another job) runs on one of these processors, a spinning member uses
// up the time slice that its team needs: steps then take ten times as long.
//
// libgomp reads its policy once, before this library is loaded. So during
// contention, a parked team of idle threads raises the number of threads above
// the number of processors.
//
//===----------------------------------------------------------------------===//

#ifndef TORCH_LTC_RUNTIME_PROCESSORCONTENTION_H
#define TORCH_LTC_RUNTIME_PROCESSORCONTENTION_H

#include "torch_ltc-c/processor_times.h"

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>

namespace torch_ltc::runtime {

/// Reads the current times; std::nullopt if the system doesn't provide them.
std::optional<LtcProcessorTimes> readProcessorTimes();

/// Decides from samples whether other processes contend for the processors that
/// a team of `numThreads` needs.
class ContentionEstimate {
public:
  explicit ContentionEstimate(int numProcessors)
      : numProcessors(numProcessors) {}

  /// Adds the sample between the last call and `now`. Returns whether there is
  /// contention.
  bool add(const LtcProcessorTimes &now, int numThreads);

private:
  const int numProcessors;
  std::optional<LtcProcessorTimes> last;
  bool isContended = false;
  int numQuietSamples = 0;
};

class ParkedTeam;

/// Makes the process's OpenMP threads sleep during contention. Thread-safe.
class ProcessorContention {
public:
  static ProcessorContention &get();

  /// Takes a sample at most every 250 ms, and otherwise only reads a clock. To
  /// be called before a run with a team of `numThreads`.
  void beforeRun(int numThreads);

private:
  ProcessorContention();
  ~ProcessorContention();

  std::mutex mutex;
  std::unique_ptr<ParkedTeam> parked;
  ContentionEstimate estimate;
  int64_t nextSample = 0; // steady clock, ns
};

} // namespace torch_ltc::runtime

#endif // TORCH_LTC_RUNTIME_PROCESSORCONTENTION_H
