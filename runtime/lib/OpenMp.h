//===- OpenMp.h - The functions of libgomp that the runtime uses ----------===//
//
// The functions are declared here because omp.h and `#pragma omp parallel`
// belong to the compiler: those of clang use LLVM's libomp, which would be a
// second thread pool in addition to that of PyTorch and oneDNN.
//
//===----------------------------------------------------------------------===//

#ifndef TORCH_LTC_RUNTIME_OPENMP_H
#define TORCH_LTC_RUNTIME_OPENMP_H

#ifdef __SANITIZE_THREAD__
#include <sanitizer/tsan_interface.h>
#endif

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

/// Makes omp_pause_resource_all end the threads and keep the settings.
constexpr int kSoftPause = 1;

/// Tells ThreadSanitizer that a team starts after its caller's earlier work and
/// ends before the caller's later work, because libgomp isn't instrumented. The
/// addresses only identify the start and the end of the team.
struct TeamOrder {
#ifdef __SANITIZE_THREAD__
  static void start(char *team) { __tsan_release(team); }
  static void enter(char *team) { __tsan_acquire(team); }
  static void leave(char *team) { __tsan_release(team + 1); }
  static void finish(char *team) { __tsan_acquire(team + 1); }
#else
  static void start(char *) {}
  static void enter(char *) {}
  static void leave(char *) {}
  static void finish(char *) {}
#endif
};

/// Calls `body` once on each thread of a team, and waits for all of them. The
/// team can be smaller than requested (OMP_THREAD_LIMIT, nesting).
template <typename Body> void runTeam(int numThreads, const Body &body) {
  void *data = const_cast<Body *>(&body);
  TeamOrder::start(static_cast<char *>(data));
  GOMP_parallel(
      [](void *data) noexcept {
        TeamOrder::enter(static_cast<char *>(data));
        (*static_cast<const Body *>(data))();
        TeamOrder::leave(static_cast<char *>(data));
      },
      data, unsigned(numThreads), /*flags=*/0);
  TeamOrder::finish(static_cast<char *>(data));
}

} // namespace torch_ltc::runtime

#endif // TORCH_LTC_RUNTIME_OPENMP_H
