//===- TensorConversion.h - Torch dialect to a target -----------*- C++ -*-===//

#ifndef TORCH_LTC_CONVERSION_TORCHTOTENSORS_TENSORCONVERSION_H
#define TORCH_LTC_CONVERSION_TORCHTOTENSORS_TENSORCONVERSION_H

#include "TensorLowering.h"

#include "mlir/IR/BuiltinOps.h"

namespace mlir::torch_ltc {

/// The ops that all of these targets support.
const TensorLoweringTable &tensorLoweringTable();

/// Converts functions of the torch dialect at the contract, with the table's
/// ops as the legal ones. Numbers that are parameters of a function become
/// tensors without dimensions. `isLegalOp`: the op belongs to the target's
/// dialects. Every op that can't be expressed is an error with its line.
LogicalResult convertToTensors(ModuleOp module, TensorTargetFactory makeTarget,
                               function_ref<bool(Operation *)> isLegalOp);

} // namespace mlir::torch_ltc

#endif // TORCH_LTC_CONVERSION_TORCHTOTENSORS_TENSORCONVERSION_H
