//===- LoopKernelsAvx2.cpp - The runtime's own loops for x86-64-v3 --------===//

#define LTC_INSTRUCTION_SET avx2
#include "LoopKernels.inc"
