//===- Passes.h - torch dialect -> StableHLO --------------------*- C++ -*-===//

#ifndef TORCH_LTC_CONVERSION_TORCHTOSTABLEHLO_PASSES_H
#define TORCH_LTC_CONVERSION_TORCHTOSTABLEHLO_PASSES_H

#include "torch_ltc/Dialect/Stablehlo/StablehloDialect.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Pass/Pass.h"

namespace mlir::torch_ltc {

#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "torch_ltc/Conversion/TorchToStablehlo/Passes.h.inc"

/// The ops that the conversion supports; all others are decomposed before the
/// conversion or rejected by the backend contract.
std::vector<std::string> torchToStablehloLegalOps();

/// Adds the passes from a traced program to the stablehlo stage.
void buildTorchToStablehloPipeline(OpPassManager &passes);

} // namespace mlir::torch_ltc

#endif // TORCH_LTC_CONVERSION_TORCHTOSTABLEHLO_PASSES_H
