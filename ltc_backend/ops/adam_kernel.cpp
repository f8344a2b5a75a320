//===- adam_kernel.cpp - Adam's update of one parameter on the CPU --------===//
//
// Two loops instead of seven calls of ATen's kernels, which take longer than
// the update of a small parameter. Only the square root between the loops is a
// call: eager's results are MKL's, which aren't always rounded correctly.
//
//===----------------------------------------------------------------------===//

#include "ops/adam_kernel.h"

#include <ATen/Dispatch.h>
#include <ATen/Parallel.h>
#include <ATen/TensorIterator.h> // the grain of eager's loops
#include <ATen/Version.h>
#include <ATen/ops/sqrt.h>

#include <cmath>

using namespace torch_ltc;
using at::Tensor;

// The compiler may fuse a product with the sum that follows only within one
// statement, as in eager's kernels.
#pragma clang fp contract(on)

// A result may have the memory of the operand that it updates.
#ifdef __clang__
#define TORCH_LTC_INDEPENDENT_ITERATIONS                                       \
  _Pragma("clang loop vectorize(assume_safety)")
#else
#define TORCH_LTC_INDEPENDENT_ITERATIONS _Pragma("GCC ivdep")
#endif

#ifdef __x86_64__
#define TORCH_LTC_WITH_FMA __attribute__((target("avx2,fma")))
#else // eager's kernels for other processors always use fused multiply-adds
#define TORCH_LTC_WITH_FMA
#endif

namespace {

template <typename T> struct Update {
  const T *self, *grad, *expAvg, *expAvgSq;
  T *newSelf, *newAvg, *newSq;
  const T *root; ///< of newSq
  AdamNumbers numbers;
};

template <typename T>
[[gnu::always_inline]] inline void updateAverages(const Update<T> &update,
                                                  int64_t begin, int64_t end) {
  const T *grad = update.grad, *avg = update.expAvg, *sq = update.expAvgSq;
  T *newAvg = update.newAvg, *newSq = update.newSq;
  T weight = update.numbers.lerpWeight, beta2 = update.numbers.beta2;
  T value = update.numbers.value;
  // Eager's lerp computes from the nearer end.
  bool isNear = std::abs(weight) < T(0.5);
  T slope = isNear ? weight : weight - 1;
  TORCH_LTC_INDEPENDENT_ITERATIONS
  for (int64_t i = begin; i < end; ++i) {
    T base = isNear ? avg[i] : grad[i];
    newAvg[i] = base + slope * (grad[i] - avg[i]);
    T decayed = sq[i] * beta2;
    newSq[i] = decayed + value * grad[i] * grad[i];
  }
}

template <typename T>
[[gnu::always_inline]] inline void updateParameter(const Update<T> &update,
                                                   int64_t begin, int64_t end) {
  const T *self = update.self, *avg = update.newAvg, *root = update.root;
  T *newSelf = update.newSelf;
  T bias2Root = update.numbers.bias2Root, eps = update.numbers.eps;
  T step = update.numbers.negativeStepSize, decay = update.numbers.decay;
  TORCH_LTC_INDEPENDENT_ITERATIONS
  for (int64_t i = begin; i < end; ++i) {
    T scaled = root[i] / bias2Root;
    T denominator = scaled + eps;
    T decayed = self[i] * decay;
    newSelf[i] = decayed + step * avg[i] / denominator;
  }
}

enum class Stage { averages, parameter };

template <typename T>
void run(Stage stage, const Update<T> &update, int64_t begin, int64_t end) {
  stage == Stage::averages ? updateAverages(update, begin, end)
                           : updateParameter(update, begin, end);
}
template <typename T>
TORCH_LTC_WITH_FMA void runWithFma(Stage stage, const Update<T> &update,
                                   int64_t begin, int64_t end) {
  stage == Stage::averages ? updateAverages(update, begin, end)
                           : updateParameter(update, begin, end);
}

/// Whether eager's kernels fuse products and sums on this processor. They don't
/// if the environment selects the default kernels (ATEN_CPU_CAPABILITY).
bool usesFma() {
#ifdef __x86_64__
  static const bool uses = at::get_cpu_capability().starts_with("AVX");
  return uses;
#else
  return true;
#endif
}

template <typename T>
void runInParallel(Stage stage, const Update<T> &update, int64_t count) {
  auto *loop = usesFma() ? &runWithFma<T> : &run<T>;
  at::parallel_for(
      0, count, at::internal::GRAIN_SIZE,
      [&](int64_t begin, int64_t end) { loop(stage, update, begin, end); });
}

} // namespace

void torch_ltc::updateWithAdam(const Tensor &self, const Tensor &grad,
                               const Tensor &expAvg, const Tensor &expAvgSq,
                               const AdamNumbers &numbers,
                               const Tensor &newSelf, const Tensor &newAvg,
                               const Tensor &newSq) {
  for (const Tensor *result : {&newSelf, &newAvg, &newSq})
    TORCH_INTERNAL_ASSERT(result->is_contiguous());
  AT_DISPATCH_FLOATING_TYPES(self.scalar_type(), "adam_update", [&] {
    using T = scalar_t;
    Update<T> update{.self = self.const_data_ptr<T>(),
                     .grad = grad.const_data_ptr<T>(),
                     .expAvg = expAvg.const_data_ptr<T>(),
                     .expAvgSq = expAvgSq.const_data_ptr<T>(),
                     .newSelf = newSelf.mutable_data_ptr<T>(),
                     .newAvg = newAvg.mutable_data_ptr<T>(),
                     .newSq = newSq.mutable_data_ptr<T>(),
                     .root = nullptr,
                     .numbers = numbers};
    runInParallel(Stage::averages, update, self.numel());
    Tensor root = at::sqrt(newSq);
    update.root = root.const_data_ptr<T>();
    runInParallel(Stage::parameter, update, self.numel());
  });
}

#undef TORCH_LTC_INDEPENDENT_ITERATIONS
#undef TORCH_LTC_WITH_FMA
