//===- LoopKernels.cpp - Choice of the instruction set --------------------===//

#include "LoopKernels.h"

using namespace torch_ltc::runtime;

namespace {

enum class InstructionSet { Baseline, Avx2, Avx512 };

InstructionSet bestInstructionSet() {
#if defined(__x86_64__)
  static const bool hasAvx512 =
      __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512cd") &&
      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  static const bool hasAvx2 =
      __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
      __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("f16c");
  if (hasAvx2)
    return hasAvx512 ? InstructionSet::Avx512 : InstructionSet::Avx2;
#endif
  return InstructionSet::Baseline;
}

int64_t roundUp(int64_t value, int64_t unit) {
  return (value + unit - 1) / unit * unit;
}

} // namespace

const LoopKernels *torch_ltc::runtime::loopKernels(int dtype) {
  switch (bestInstructionSet()) {
#if defined(__x86_64__)
  case InstructionSet::Avx512:
    return avx512::loopKernels(dtype);
  case InstructionSet::Avx2:
    return avx2::loopKernels(dtype);
#endif
  default:
    return baseline::loopKernels(dtype);
  }
}

const AttentionKernels &torch_ltc::runtime::attentionKernels() {
  switch (bestInstructionSet()) {
#if defined(__x86_64__)
  case InstructionSet::Avx512:
    return avx512::kAttention;
  case InstructionSet::Avx2:
    return avx2::kAttention;
#endif
  default:
    return baseline::kAttention;
  }
}

// The scratch sizes below are those of the widest panel, an upper bound for
// AttentionLoops.inc.

int64_t
torch_ltc::runtime::attentionScratchFloats(const AttentionArguments &g) {
  return (g.width + g.valueWidth + kMaxKeysOfBlock) * kMaxQueriesOfPanel;
}

int64_t torch_ltc::runtime::attentionBackwardScratchFloats(
    const AttentionArguments &g) {
  int64_t padded = roundUp(g.width, kMaxQueriesOfPanel) +
                   roundUp(g.valueWidth, kMaxQueriesOfPanel);
  return (2 * g.width + g.valueWidth + padded + 2 * kMaxKeysOfBlock) *
             kMaxQueriesOfPanel +
         g.keys * padded;
}
