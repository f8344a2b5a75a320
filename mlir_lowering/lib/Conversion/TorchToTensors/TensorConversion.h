//===- TensorConversion.h - Torch dialect to a target -----------*- C++ -*-===//

#ifndef TORCH_LTC_CONVERSION_TORCHTOTENSORS_TENSORCONVERSION_H
#define TORCH_LTC_CONVERSION_TORCHTOTENSORS_TENSORCONVERSION_H

#include "TensorLowering.h"

#include "mlir/IR/BuiltinOps.h"

namespace mlir::torch_ltc {

/// The lowerings of all ops; TOSA and StableHLO share this table.
const TensorLoweringTable &tensorLoweringTable();

/// Applies the table's lowerings to the functions of `module`, which must
/// satisfy the backend contract. Dynamic scalars become rank-0 tensors.
/// `isLegalOp` returns whether an op belongs to the target's dialect. Emits an
/// error with the user's line for each op that the target can't express, and
/// then fails.
LogicalResult convertToTensors(ModuleOp module, TensorTargetFactory makeTarget,
                               function_ref<bool(Operation *)> isLegalOp);

} // namespace mlir::torch_ltc

#endif // TORCH_LTC_CONVERSION_TORCHTOTENSORS_TENSORCONVERSION_H
