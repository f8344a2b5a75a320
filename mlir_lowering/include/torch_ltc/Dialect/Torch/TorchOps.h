//===- TorchOps.h - Constants and primitives of the torch dialect -*- C++ -*-=//
//
// ATen operators are declared by family in the generated headers
// TorchOps_<family>.h.
//
//===----------------------------------------------------------------------===//

#ifndef TORCH_LTC_DIALECT_TORCH_TORCHOPS_H
#define TORCH_LTC_DIALECT_TORCH_TORCHOPS_H

#include "torch_ltc/Dialect/Torch/TorchTypes.h"

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#define GET_OP_CLASSES
#include "torch_ltc/Dialect/Torch/TorchOps.h.inc"

#endif // TORCH_LTC_DIALECT_TORCH_TORCHOPS_H
