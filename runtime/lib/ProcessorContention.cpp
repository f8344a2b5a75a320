//===- ProcessorContention.cpp - Contention with other processes ----------===//

#include "ProcessorContention.h"

#include "OpenMp.h"

#include <chrono>
#include <condition_variable>
#include <pthread.h>
#include <thread>
#include <utility>

using namespace torch_ltc::runtime;

namespace {

// Much longer than the ticks of 10 ms in which Linux counts processor times.
constexpr int64_t kSampleInterval = 250'000'000; // ns
/// The load of other processes, in processors, that is tolerated beyond the
/// processors that a team leaves free. Background services stay below it.
constexpr double kToleratedLoad = 0.25;
constexpr int kQuietSamplesBeforeEnd = 4;

int64_t steadyNanoseconds() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

} // namespace

std::optional<LtcProcessorTimes> torch_ltc::runtime::readProcessorTimes() {
  LtcProcessorTimes times;
  return ltcReadProcessorTimes(&times) ? std::optional(times) : std::nullopt;
}

bool ContentionEstimate::add(const LtcProcessorTimes &now, int numThreads) {
  std::optional<LtcProcessorTimes> before = std::exchange(last, now);
  if (!before || now.wall <= before->wall)
    return isContended;
  double others = ltcProcessorsOfOthers(&*before, &now);
  if (others > numProcessors - numThreads + kToleratedLoad) {
    isContended = true;
    numQuietSamples = 0;
  } else if (isContended && ++numQuietSamples == kQuietSamplesBeforeEnd) {
    isContended = false;
    numQuietSamples = 0;
  }
  return isContended;
}

//===----------------------------------------------------------------------===//
// ParkedTeam
//===----------------------------------------------------------------------===//

/// An OpenMP team of `numThreads` sleeping threads, more than there are
/// processors.
class torch_ltc::runtime::ParkedTeam {
public:
  explicit ParkedTeam(int numThreads)
      : thread([this, numThreads] { park(numThreads); }) {}

  ~ParkedTeam() {
    {
      std::lock_guard<std::mutex> lock(mutex);
      isReleased = true;
    }
    released.notify_one();
    thread.join();
  }

private:
  void park(int numThreads) {
    // The team exists from now on; its members wait for more work.
    runTeam(numThreads, [] {});
    std::unique_lock<std::mutex> lock(mutex);
    released.wait(lock, [&] { return isReleased; });
    // libgomp ends the members with their master.
  }

  std::mutex mutex;
  std::condition_variable released;
  bool isReleased = false;
  std::thread thread;
};

//===----------------------------------------------------------------------===//
// ProcessorContention
//===----------------------------------------------------------------------===//

ProcessorContention::ProcessorContention() : estimate(omp_get_num_procs()) {}

ProcessorContention::~ProcessorContention() = default;

ProcessorContention &ProcessorContention::get() {
  // Never destroyed, because exit() may already have ended the parked team. A
  // child of fork() gets a new instance, because it has neither the team nor
  // the thread that may have locked the mutex.
  static ProcessorContention *instance = new ProcessorContention;
  static int handler = pthread_atfork(
      nullptr, nullptr, [] { instance = new ProcessorContention; });
  (void)handler;
  return *instance;
}

void ProcessorContention::beforeRun(int numThreads) {
  std::unique_lock<std::mutex> lock(mutex, std::try_to_lock);
  if (!lock || numThreads < 2)
    return;
  int64_t now = steadyNanoseconds();
  if (now < nextSample)
    return;
  nextSample = now + kSampleInterval;
  std::optional<LtcProcessorTimes> times = readProcessorTimes();
  if (!times)
    return;
  bool isContended = estimate.add(*times, numThreads);
  if (isContended && !parked)
    parked = std::make_unique<ParkedTeam>(omp_get_num_procs() + 1);
  else if (!isContended)
    parked.reset();
}
