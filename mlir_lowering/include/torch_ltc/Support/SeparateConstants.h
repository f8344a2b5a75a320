//===- SeparateConstants.h - One constant for each use ----------*- C++ -*-===//

#ifndef TORCH_LTC_SUPPORT_SEPARATECONSTANTS_H
#define TORCH_LTC_SUPPORT_SEPARATECONSTANTS_H

#include "mlir/IR/Region.h"

namespace mlir::torch_ltc {

/// Clones each constant number in front of each op that uses it, in the order
/// of operands. Two numbers that happen to be equal in one sample of a program
/// for all sizes share a constant there; with a constant for each use, all
/// samples have the same ops.
void separateConstants(Region &region);

} // namespace mlir::torch_ltc

#endif // TORCH_LTC_SUPPORT_SEPARATECONSTANTS_H
