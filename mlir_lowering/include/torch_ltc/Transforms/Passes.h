//===- Passes.h - Passes within the torch dialect ---------------*- C++ -*-===//

#ifndef TORCH_LTC_TRANSFORMS_PASSES_H
#define TORCH_LTC_TRANSFORMS_PASSES_H

#include "mlir/Pass/Pass.h"

namespace mlir::torch_ltc {

// Declares create...Pass() and the options struct of each pass in Passes.td,
// such as DecomposeOpsPassOptions{.legalOps = {"aten._softmax"}}.
#define GEN_PASS_DECL
#include "torch_ltc/Transforms/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "torch_ltc/Transforms/Passes.h.inc"

} // namespace mlir::torch_ltc

#endif // TORCH_LTC_TRANSFORMS_PASSES_H
