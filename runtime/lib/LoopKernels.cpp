//===- LoopKernels.cpp - Choice of the instruction set --------------------===//

#include "LoopKernels.h"

using namespace torch_ltc::runtime;

const LoopKernels *torch_ltc::runtime::loopKernels(int dtype) {
#if defined(__x86_64__)
  static const bool hasAvx512 =
      __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512cd") &&
      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  static const bool hasAvx2 =
      __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
      __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("f16c");
  if (hasAvx2 && hasAvx512)
    return avx512::loopKernels(dtype);
  if (hasAvx2)
    return avx2::loopKernels(dtype);
#endif
  return baseline::loopKernels(dtype);
}
