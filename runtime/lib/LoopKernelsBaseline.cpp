//===- LoopKernelsBaseline.cpp - Own loops for any CPU -------------------===//

#define LTC_INSTRUCTION_SET baseline
#include "LoopKernels.inc"
