//===- Passes.h - torch dialect -> linalg on tensors ------------*- C++ -*-===//

#ifndef TORCH_LTC_CONVERSION_TORCHTOLINALG_PASSES_H
#define TORCH_LTC_CONVERSION_TORCHTOLINALG_PASSES_H

#include "torch_ltc/Dialect/Ltc/LtcDialect.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/DialectConversion.h"

namespace mlir::torch_ltc {

#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "torch_ltc/Conversion/TorchToLinalg/Passes.h.inc"

/// Adds conversions from torch types to builtin types: from
/// `!torch.vtensor<[2],si64>` to `tensor<2xi64>`, `!torch.int` to i64,
/// `!torch.float` to f64, `!torch.bool` to i1. Other types are unchanged.
void populateTorchToLinalgTypes(TypeConverter &converter);

/// Adds the pattern that lowers every op of the torch dialect.
void populateTorchToLinalgPatterns(RewritePatternSet &patterns,
                                   const TypeConverter &converter);

/// Adds the passes from the torch stage to the linalg stage. If `portable`,
/// which is for other compilers, the result contains no library or host calls.
void buildTorchToLinalgPipeline(OpPassManager &passes, bool portable = false);

} // namespace mlir::torch_ltc

#endif // TORCH_LTC_CONVERSION_TORCHTOLINALG_PASSES_H
