//===- Parallel.h - Splitting work among PyTorch's threads ----------------===//

#ifndef TORCH_LTC_RUNTIME_PARALLEL_H
#define TORCH_LTC_RUNTIME_PARALLEL_H

#include "OpenMp.h"

#include <algorithm>
#include <cstdint>

namespace torch_ltc::runtime {

/// Sets the OpenMP thread count of the calling thread, which oneDNN reads when
/// it creates and when it runs a primitive. The destructor restores the old
/// count.
class ThreadCountScope {
public:
  explicit ThreadCountScope(int numThreads) : saved(omp_get_max_threads()) {
    if (numThreads != saved)
      omp_set_num_threads(numThreads);
  }
  ~ThreadCountScope() {
    if (omp_get_max_threads() != saved)
      omp_set_num_threads(saved);
  }
  ThreadCountScope(const ThreadCountScope &) = delete;
  ThreadCountScope &operator=(const ThreadCountScope &) = delete;

private:
  int saved;
};

/// Minimum number of multiply-adds for which waking a thread pays off. This
/// many take about 5 us.
inline constexpr int64_t kMultiplyAddsForThread = 1 << 18;

/// Number of threads for `count` iterations, where `grain` iterations make
/// waking a thread pay off; with a grain of 0, one thread.
inline int threadsFor(int64_t count, int64_t grain, int numThreads) {
  if (grain <= 0 || count <= grain)
    return 1;
  int64_t parts = (count + grain - 1) / grain;
  return int(std::min<int64_t>(numThreads, parts));
}

/// How a command uses the threads of its run.
enum class Team {
  /// Uses only the calling thread.
  None,
  /// Splits work that takes one thread less than about 5 ms, which is how long
  /// libgomp's threads spin after the work. Fewer threads compute a bitwise
  /// identical result.
  Short,
  /// All other commands.
  Long,
};

inline Team teamFor(int threads, int64_t count, int64_t grain) {
  if (threads == 1)
    return Team::None;
  return count / grain < 1024 ? Team::Short : Team::Long;
}

/// Calls body(begin, end) for parts of [0, count) on `threads` threads; if
/// `threads` is 1, only calls body(0, count). Parts begin at multiples of
/// `unit`.
template <typename Body>
void parallelFor(int64_t count, int threads, int64_t unit, const Body &body) {
  if (threads <= 1)
    return body(int64_t(0), count);
  int64_t units = (count + unit - 1) / unit;
  runTeam(threads, [&] {
    int64_t team = omp_get_num_threads(), thread = omp_get_thread_num();
    int64_t begin = std::min(count, units * thread / team * unit);
    int64_t end = std::min(count, units * (thread + 1) / team * unit);
    if (begin < end)
      body(begin, end);
  });
}

} // namespace torch_ltc::runtime

#endif // TORCH_LTC_RUNTIME_PARALLEL_H
