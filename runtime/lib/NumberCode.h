//===- NumberCode.h - Numbers that depend on sizes ------------------------===//

#ifndef TORCH_LTC_RUNTIME_NUMBERCODE_H
#define TORCH_LTC_RUNTIME_NUMBERCODE_H

#include "executable.pb.h"

#include "llvm/ADT/ArrayRef.h"

#include <optional>

namespace torch_ltc::runtime {

/// Whether the code leaves one value on an otherwise empty stack and names only
/// symbols below `numSymbols`, which includes the checked numbers.
bool isWellFormed(const Number &number, uint32_t numSymbols);

/// The value of well-formed code for these sizes (symbols, then checked
/// numbers); std::nullopt if a result exceeds 64 bits, the divisor of an
/// integer division isn't positive, or that of a floating-point quotient is 0.
std::optional<int64_t> evaluate(const Number &number,
                                llvm::ArrayRef<int64_t> sizes);

} // namespace torch_ltc::runtime

#endif // TORCH_LTC_RUNTIME_NUMBERCODE_H
