//===- SeparateConstants.h - One constant for each use ----------*- C++ -*-===//

#ifndef TORCH_LTC_SUPPORT_SEPARATECONSTANTS_H
#define TORCH_LTC_SUPPORT_SEPARATECONSTANTS_H

#include "mlir/IR/Region.h"

namespace mlir::torch_ltc {

/// Gives each use of a number a constant of its own, before its user, in the
/// order of operands. Two numbers that are equal in one sample of a program for
/// all sizes are one constant there; separated, all samples have the same ops.
void separateConstants(Region &region);

} // namespace mlir::torch_ltc

#endif // TORCH_LTC_SUPPORT_SEPARATECONSTANTS_H
