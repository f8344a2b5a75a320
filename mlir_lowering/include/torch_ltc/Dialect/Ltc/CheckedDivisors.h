//===- CheckedDivisors.h - ltc.check_bounds of divisors ---------*- C++ -*-===//

#ifndef TORCH_LTC_DIALECT_LTC_CHECKEDDIVISORS_H
#define TORCH_LTC_DIALECT_LTC_CHECKEDDIVISORS_H

#include "llvm/ADT/StringRef.h"

namespace mlir::torch_ltc::ltc {

/// Unit attribute of `ltc.check_bounds`: the elements are divisors, of any
/// integer type, and the run ends if one is zero. The bounds don't count.
inline constexpr llvm::StringLiteral kNonzeroAttr = "nonzero";

} // namespace mlir::torch_ltc::ltc

#endif // TORCH_LTC_DIALECT_LTC_CHECKEDDIVISORS_H
