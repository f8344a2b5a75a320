//===- LoopKernelsAvx512.cpp - The runtime's own loops for x86-64-v4 ------===//

#define LTC_INSTRUCTION_SET avx512
#include "LoopKernels.inc"
