//===- OpenMp.h - The functions of libgomp that the runtime uses ----------===//
//
// Declared here instead of by omp.h and `#pragma omp parallel`: these belong to
// the compiler, and clang's use LLVM's libomp, which would be a second thread
// pool besides that of PyTorch and oneDNN.
//
//===----------------------------------------------------------------------===//

#ifndef TORCH_LTC_RUNTIME_OPENMP_H
#define TORCH_LTC_RUNTIME_OPENMP_H

extern "C" {
int omp_get_max_threads(void);
int omp_get_num_procs(void);
int omp_get_num_threads(void);
int omp_get_thread_num(void);
int omp_pause_resource_all(int kind);
void omp_set_num_threads(int numThreads);

/// What GCC compiles `#pragma omp parallel num_threads(numThreads)` to; see
/// "Implementing PARALLEL construct" in libgomp's manual.
void GOMP_parallel(void (*function)(void *data), void *data,
                   unsigned numThreads, unsigned flags);
}

namespace torch_ltc::runtime {

/// Kind of omp_pause_resource_all: keeps the settings, but not the threads.
constexpr int kSoftPause = 1;

/// Calls `body` once on each thread of a team, and waits for all of them. The
/// team can be smaller than requested (OMP_THREAD_LIMIT, nesting).
template <typename Body> void runTeam(int numThreads, const Body &body) {
  GOMP_parallel(
      [](void *data) noexcept { (*static_cast<const Body *>(data))(); },
      const_cast<Body *>(&body), unsigned(numThreads), /*flags=*/0);
}

} // namespace torch_ltc::runtime

#endif // TORCH_LTC_RUNTIME_OPENMP_H
