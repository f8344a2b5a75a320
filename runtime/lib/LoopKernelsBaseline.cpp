//===- LoopKernelsBaseline.cpp - The runtime's own loops for any CPU ------===//

#define LTC_INSTRUCTION_SET baseline
#include "LoopKernels.inc"
