//===- Passes.h - linalg on tensors -> kernels stage ------------*- C++ -*-===//
//
// Splits the program, a function on static-shape tensors, into a flat list of
// commands and a function for each kernel.
//
//===----------------------------------------------------------------------===//

#ifndef TORCH_LTC_KERNELS_PASSES_H
#define TORCH_LTC_KERNELS_PASSES_H

#include "torch_ltc/Dialect/Ltc/LtcDialect.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassManager.h"

namespace mlir::torch_ltc {

#define GEN_PASS_DECL
#include "torch_ltc/Kernels/Passes.h.inc"

/// Adds the passes from the linalg stage to the kernels stage.
void buildKernelsPipeline(OpPassManager &manager);

/// Adds passes that make the whole program one kernel: the reference for tests.
void buildReferencePipeline(OpPassManager &manager);

#define GEN_PASS_REGISTRATION
#include "torch_ltc/Kernels/Passes.h.inc"

} // namespace mlir::torch_ltc

#endif // TORCH_LTC_KERNELS_PASSES_H
