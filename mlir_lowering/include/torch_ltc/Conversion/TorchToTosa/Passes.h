//===- Passes.h - torch dialect -> TOSA -> linalg ---------------*- C++ -*-===//

#ifndef TORCH_LTC_CONVERSION_TORCHTOTOSA_PASSES_H
#define TORCH_LTC_CONVERSION_TORCHTOTOSA_PASSES_H

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Tosa/IR/TosaOps.h"
#include "mlir/Pass/Pass.h"

namespace mlir::torch_ltc {

#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "torch_ltc/Conversion/TorchToTosa/Passes.h.inc"

/// The ops that the conversion supports; all others are decomposed before the
/// conversion or rejected by the backend contract.
std::vector<std::string> torchToTosaLegalOps();

/// Adds the passes from a traced program to the tosa stage.
void buildTorchToTosaPipeline(OpPassManager &passes);

/// Adds MLIR's own passes from the tosa stage to linalg on tensors.
void buildTosaToLinalgPipeline(OpPassManager &passes);

} // namespace mlir::torch_ltc

#endif // TORCH_LTC_CONVERSION_TORCHTOTOSA_PASSES_H
