//===- StablehloDialect.h - The supported ops of StableHLO ------*- C++ -*-===//

#ifndef TORCH_LTC_DIALECT_STABLEHLO_STABLEHLODIALECT_H
#define TORCH_LTC_DIALECT_STABLEHLO_STABLEHLODIALECT_H

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "torch_ltc/Dialect/Stablehlo/StablehloDialect.h.inc"

#include "torch_ltc/Dialect/Stablehlo/StablehloEnums.h.inc"

#define GET_ATTRDEF_CLASSES
#include "torch_ltc/Dialect/Stablehlo/StablehloAttributes.h.inc"

#define GET_OP_CLASSES
#include "torch_ltc/Dialect/Stablehlo/StablehloOps.h.inc"

#endif // TORCH_LTC_DIALECT_STABLEHLO_STABLEHLODIALECT_H
