//===- LtcDialect.h - Commands of a program ---------------------*- C++ -*-===//
//
// The dialect of the kernels stage: a program is a flat list of these ops on
// tensors. Each op becomes a command of the executable.
//
//===----------------------------------------------------------------------===//

#ifndef TORCH_LTC_DIALECT_LTC_LTCDIALECT_H
#define TORCH_LTC_DIALECT_LTC_LTCDIALECT_H

#include "torch_ltc/Dialect/Ltc/Attributes.h"

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace mlir::torch_ltc::ltc {
/// The kind of memory that holds a result (`#ltc.place`).
enum class PlaceKind { Parameter, Output, Arena };
} // namespace mlir::torch_ltc::ltc

namespace mlir::torch_ltc::ltc::detail {
LogicalResult verifyConvolution(Operation *op);
LogicalResult verifyAttention(Operation *op);
} // namespace mlir::torch_ltc::ltc::detail

#include "torch_ltc/Dialect/Ltc/LtcDialect.h.inc"

#include "torch_ltc/Dialect/Ltc/LtcInterfaces.h.inc"

#define GET_ATTRDEF_CLASSES
#include "torch_ltc/Dialect/Ltc/LtcAttributes.h.inc"

#define GET_OP_CLASSES
#include "torch_ltc/Dialect/Ltc/LtcOps.h.inc"

#endif // TORCH_LTC_DIALECT_LTC_LTCDIALECT_H
