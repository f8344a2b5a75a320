//===- Passes.h - Kernel on tensors -> LLVM dialect -------------*- C++ -*-===//

#ifndef TORCH_LTC_CODEGEN_PASSES_H
#define TORCH_LTC_CODEGEN_PASSES_H

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassManager.h"

namespace mlir::torch_ltc {

#define GEN_PASS_DECL
#include "torch_ltc/Codegen/Passes.h.inc"

/// Pipelines from kernels on tensors to the LLVM dialect. Each kernel becomes
/// an `llvm.func @name` whose arguments are a pointer for each operand and
/// result, and the range [begin, end) of iterations as two i64. The first
/// pipeline is for kernels with a schedule, the second for all others (for
/// example, scatters), which have one iteration.
void buildLoopsPipeline(OpPassManager &manager);
void buildBufferizationPipeline(OpPassManager &manager);

#define GEN_PASS_REGISTRATION
#include "torch_ltc/Codegen/Passes.h.inc"

} // namespace mlir::torch_ltc

#endif // TORCH_LTC_CODEGEN_PASSES_H
