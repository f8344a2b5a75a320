//===- LtcDialect.h - Calls of kernels and library functions ----*- C++ -*-===//
//
// The dialect of the kernels stage: a program is a flat list of
// `ltc.kernel_call` and `ltc.library_call` on tensors. Each call becomes one
// command of the executable.
//
//===----------------------------------------------------------------------===//

#ifndef TORCH_LTC_DIALECT_LTC_LTCDIALECT_H
#define TORCH_LTC_DIALECT_LTC_LTCDIALECT_H

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace mlir::torch_ltc::ltc {

/// Names that `ltc.library_call` accepts.
inline constexpr llvm::StringLiteral kMatmulName = "matmul";
inline constexpr llvm::StringLiteral kConvolutionForwardName =
    "convolution_forward";
inline constexpr llvm::StringLiteral kConvolutionBackwardInputName =
    "convolution_backward_input";
inline constexpr llvm::StringLiteral kConvolutionBackwardWeightName =
    "convolution_backward_weight";
inline constexpr llvm::StringLiteral kAttentionName = "attention";
inline constexpr llvm::StringLiteral kAttentionBackwardName =
    "attention_backward";
inline constexpr llvm::StringLiteral kHostName = "host";

/// Unit attribute of the program's parameters and results whose integers are
/// unsigned in torch: from the linalg stage on, types have no signs.
inline constexpr llvm::StringLiteral kUnsignedAttr = "torch_ltc.unsigned";

} // namespace mlir::torch_ltc::ltc

#include "torch_ltc/Dialect/Ltc/LtcDialect.h.inc"

#define GET_OP_CLASSES
#include "torch_ltc/Dialect/Ltc/LtcOps.h.inc"

#endif // TORCH_LTC_DIALECT_LTC_LTCDIALECT_H
