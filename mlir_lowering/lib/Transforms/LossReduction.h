//===- LossReduction.h - Reduction of a loss op's elements ------*- C++ -*-===//

#ifndef TORCH_LTC_TRANSFORMS_LOSSREDUCTION_H
#define TORCH_LTC_TRANSFORMS_LOSSREDUCTION_H

#include <cstdint>

namespace mlir::torch_ltc {

/// at::Reduction, the argument `reduction` of loss ops.
enum Reduction : int64_t { None = 0, Mean = 1, Sum = 2 };

} // namespace mlir::torch_ltc

#endif // TORCH_LTC_TRANSFORMS_LOSSREDUCTION_H
