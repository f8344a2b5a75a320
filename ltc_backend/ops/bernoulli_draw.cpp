//===- bernoulli_draw.cpp - Random numbers that are 0 or 1 ----------------===//
//
// Torch's generator is a Mersenne Twister (MT19937), and its kernel takes two
// 32-bit numbers from it for each element, one after the other. In torch 2.13
// this takes 6 ns an element, a quarter of the time of a training step of a
// small transformer with dropout. The loops below compute many numbers at once,
// in 0.6 ns an element. On Intel processors torch calls a generator of MKL
// instead; the first call finds out which algorithm torch uses.
//
// Formula: M. Matsumoto and T. Nishimura, "Mersenne Twister: A
// 623-dimensionally equidistributed uniform pseudo-random number generator",
// 1998.
//
//===----------------------------------------------------------------------===//

#include "ops/bernoulli_draw.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Dispatch.h>
#include <ATen/Functions.h>

#include <algorithm>
#include <cmath>

using State = at::mt19937_data_pod;

namespace {

constexpr int kWords = at::MERSENNE_STATE_N, kOffset = at::MERSENNE_STATE_M;

/// An element is 1 if the lower 53 bits of its random number are less than
/// `threshold`.
struct Elements {
  int64_t threshold;
  int64_t count;
  void *memory;
};

[[gnu::always_inline]] inline uint32_t twist(uint32_t current, uint32_t next) {
  uint32_t mixed = (current & 0x80000000U) | (next & 0x7fffffffU);
  return (mixed >> 1) ^ (-(next & 1U) & 0x9908b0dfU);
}

[[gnu::always_inline]] inline void computeNextWords(uint32_t *words) {
  for (int i = 0; i < kWords - kOffset; ++i)
    words[i] = words[i + kOffset] ^ twist(words[i], words[i + 1]);
  for (int i = kWords - kOffset; i < kWords - 1; ++i)
    words[i] = words[i + kOffset - kWords] ^ twist(words[i], words[i + 1]);
  words[kWords - 1] = words[kOffset - 1] ^ twist(words[kWords - 1], words[0]);
}

/// Takes `count` numbers from the generator.
[[gnu::always_inline]] inline void take(State &state, uint32_t *numbers,
                                        int count) {
  while (count > 0) {
    if (state.left_ == 1) { // all words have been used
      computeNextWords(state.state_.data());
      state.left_ = kWords + 1;
      state.next_ = 0;
    }
    int taken = std::min(count, state.left_ - 1);
    const uint32_t *words = state.state_.data() + state.next_;
    for (int i = 0; i < taken; ++i) {
      uint32_t number = words[i];
      number ^= number >> 11;
      number ^= (number << 7) & 0x9d2c5680U;
      number ^= (number << 15) & 0xefc60000U;
      numbers[i] = number ^ (number >> 18);
    }
    state.next_ += uint32_t(taken);
    state.left_ -= taken;
    numbers += taken;
    count -= taken;
  }
}

template <typename T>
[[gnu::always_inline]] inline void drawWith(State &state,
                                            const Elements &elements) {
  constexpr int kBlock = 512;
  uint32_t numbers[2 * kBlock];
  T *memory = static_cast<T *>(elements.memory);
  for (int64_t begin = 0; begin < elements.count; begin += kBlock) {
    int size = int(std::min<int64_t>(kBlock, elements.count - begin));
    take(state, numbers, 2 * size);
    for (int i = 0; i < size; ++i) {
      auto high = int64_t(numbers[2 * i] & 0x1fffffU);
      int64_t number = (high << 32) | int64_t(numbers[2 * i + 1]);
      memory[begin + i] = static_cast<T>(number < elements.threshold);
    }
  }
}

template <typename T> void draw(State &state, const Elements &elements) {
  drawWith<T>(state, elements);
}

#ifdef __x86_64__
template <typename T>
__attribute__((target("avx2"))) void drawWithAvx2(State &state,
                                                  const Elements &elements) {
  drawWith<T>(state, elements);
}
#endif

template <typename T> void drawFast(State &state, const Elements &elements) {
#ifdef __x86_64__
  if (__builtin_cpu_supports("avx2"))
    return drawWithAvx2<T>(state, elements);
#endif
  draw<T>(state, elements);
}

/// Fills `memory` (bool or floats).
void fill(State &state, const at::Tensor &memory, double p) {
  Elements elements{.threshold = int64_t(std::ceil(std::ldexp(p, 53))),
                    .count = memory.numel(),
                    .memory = memory.mutable_data_ptr()};
  if (memory.scalar_type() == at::kBool)
    return drawFast<bool>(state, elements);
  AT_DISPATCH_FLOATING_TYPES_AND2(at::kHalf, at::kBFloat16,
                                  memory.scalar_type(), "bernoulli_draw",
                                  [&] { drawFast<scalar_t>(state, elements); });
}

bool areEqual(const State &a, const State &b) {
  return a.left_ == b.left_ && a.next_ == b.next_ && a.state_ == b.state_;
}

/// Whether torch's kernel draws the numbers that `fill` draws.
bool isTorchsAlgorithm() {
  static const bool isIt = [] {
    at::AutoDispatchBelowADInplaceOrView below;
    auto generator = at::make_generator<at::CPUGeneratorImpl>(1);
    auto *torchs = at::check_generator<at::CPUGeneratorImpl>(generator);
    State state = torchs->engine().data();
    at::Tensor expected = at::empty({kWords}, at::kBool);
    at::Tensor drawn = at::empty_like(expected);
    expected.bernoulli_(0.6, generator);
    fill(state, drawn, 0.6);
    return areEqual(state, torchs->engine().data()) &&
           at::equal(expected, drawn);
  }();
  return isIt;
}

/// Whether the elements are in one block, so that torch's kernel draws in the
/// order of their addresses, and are enough to be worth copying the state.
bool canFill(const at::Tensor &memory, double p) {
  constexpr int64_t kFewElements = 128;
  at::ScalarType dtype = memory.scalar_type();
  return memory.numel() > kFewElements && p >= 0 && p <= 1 &&
         (dtype == at::kBool ||
          (c10::isFloatingType(dtype) && !c10::isFloat8Type(dtype))) &&
         memory.is_non_overlapping_and_dense() && isTorchsAlgorithm();
}

/// Fills `memory`. Returns false and draws nothing if the generator's state was
/// set to words that a Mersenne Twister doesn't produce.
bool fillFrom(const std::optional<at::Generator> &generator,
              const at::Tensor &memory, double p) {
  auto *torchs = at::get_generator_or_default<at::CPUGeneratorImpl>(
      generator, at::detail::getDefaultCPUGenerator());
  std::scoped_lock lock(torchs->mutex_);
  at::mt19937 engine = torchs->engine();
  State state = engine.data();
  if (!engine.is_valid() ||
      (state.left_ > 1 && state.left_ + int(state.next_) > kWords + 1))
    return false;
  fill(state, memory, p);
  engine.set_data(state);
  torchs->set_engine(engine);
  return true;
}

} // namespace

at::Tensor torch_ltc::drawBernoulli(at::Tensor memory, double p,
                                    std::optional<at::Generator> generator) {
  if (!canFill(memory, p) || !fillFrom(generator, memory, p))
    memory.bernoulli_(p, std::move(generator));
  return memory;
}
