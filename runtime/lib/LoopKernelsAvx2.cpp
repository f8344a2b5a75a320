//===- LoopKernelsAvx2.cpp - Own loops for x86-64-v3 ---------------------===//

#define LTC_INSTRUCTION_SET avx2
#include "LoopKernels.inc"
