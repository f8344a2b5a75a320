//===- NumberCodes.h - Parts of the codes of numbers ------------*- C++ -*-===//

#ifndef TORCH_LTC_LIB_CODEGEN_NUMBERCODES_H
#define TORCH_LTC_LIB_CODEGEN_NUMBERCODES_H

#include "torch_ltc/Codegen/NumberFitter.h"

#include "executable.pb.h"

#include <array>
#include <cstdint>

namespace mlir::torch_ltc {

namespace runtime = ::torch_ltc::runtime;

/// Returns samples that are all `value`.
template <typename T> std::array<T, kNumSamples> everywhere(T value) {
  std::array<T, kNumSamples> result;
  result.fill(value);
  return result;
}

inline NumberCode constant(int64_t value) { return {runtime::CONSTANT, value}; }

inline NumberCode apply(runtime::NumberOp op, NumberCode a,
                        const NumberCode &b) {
  a.insert(a.end(), b.begin(), b.end());
  a.push_back(op);
  return a;
}

inline NumberCode scaled(NumberCode code, int64_t factor) {
  return factor == 1
             ? code
             : apply(runtime::MULTIPLY, std::move(code), constant(factor));
}

inline NumberCode shifted(NumberCode code, int64_t offset) {
  return offset == 0 ? code
                     : apply(runtime::ADD, std::move(code), constant(offset));
}

} // namespace mlir::torch_ltc

#endif // TORCH_LTC_LIB_CODEGEN_NUMBERCODES_H
