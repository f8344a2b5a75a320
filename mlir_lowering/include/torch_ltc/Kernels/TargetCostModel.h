//===- TargetCostModel.h - Costs on the processor ---------------*- C++ -*-===//
//
// Numbers that determine how kernels are grouped, scheduled and split. The
// numbers are relative (for example, an access compared with an instruction) or
// chosen with a margin (for example, half of the smallest second-level cache in
// use), so that one set serves x86-64 with AVX2 or AVX-512 and AArch64 with
// NEON; apart from its instructions, a program doesn't depend on the processor.
// `ltc-opt --print-target-cost-model` prints the numbers.
//
//===----------------------------------------------------------------------===//

#ifndef TORCH_LTC_KERNELS_TARGETCOSTMODEL_H
#define TORCH_LTC_KERNELS_TARGETCOSTMODEL_H

#include <cstdint>

namespace mlir::torch_ltc {

struct TargetCostModel {
#define LTC_COST(name, value, help) static constexpr int64_t name = value;
#include "torch_ltc/Kernels/TargetCostModel.def"
};

} // namespace mlir::torch_ltc

#endif // TORCH_LTC_KERNELS_TARGETCOSTMODEL_H
