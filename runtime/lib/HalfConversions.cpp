//===- HalfConversions.cpp - float16 and bfloat16 routines for kernels ----===//

#include "HalfConversions.h"

#include "llvm/ADT/StringSwitch.h"

#include <cstdint>
#include <cstring>

using namespace torch_ltc::runtime;

namespace {

/// Both 16-bit types are passed in the low 16 bits of an SSE register, so g++
/// 12, which has no scalar __bf16, can pass bfloat16 bits as a _Float16.
using Half = _Float16;

Half fromBits(uint16_t bits) {
  Half half;
  std::memcpy(&half, &bits, sizeof(half));
  return half;
}

Half truncateFloatToBFloat(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  if ((bits & 0x7fffffff) > 0x7f800000)
    return fromBits(uint16_t(bits >> 16 | 0x40)); // quiet NaN
  // Rounds to nearest, ties to even.
  bits += 0x7fff + (bits >> 16 & 1);
  return fromBits(uint16_t(bits >> 16));
}

/// Rounds only once: first converts to float with round-to-odd, which suffices
/// because float has more than two bits beyond bfloat16.
Half truncateDoubleToBFloat(double value) {
  float nearest = float(value);
  if (double(nearest) == value || value != value)
    return truncateFloatToBFloat(nearest);
  uint32_t bits;
  std::memcpy(&bits, &nearest, sizeof(bits));
  double magnitude = value < 0 ? -value : value;
  double rounded = nearest < 0 ? -double(nearest) : double(nearest);
  if (rounded > magnitude)
    --bits; // towards zero; an infinity becomes the largest finite number
  bits |= 1;
  std::memcpy(&nearest, &bits, sizeof(bits));
  return truncateFloatToBFloat(nearest);
}

float extendBFloatToFloat(Half value) {
  uint16_t half;
  std::memcpy(&half, &value, sizeof(half));
  uint32_t bits = uint32_t(half) << 16;
  float result;
  std::memcpy(&result, &bits, sizeof(result));
  return result;
}

float extendHalfToFloat(Half value) { return float(value); }
double extendHalfToDouble(Half value) { return double(value); }
Half truncateFloatToHalf(float value) { return Half(value); }
Half truncateDoubleToHalf(double value) { return Half(value); }

} // namespace

void *torch_ltc::runtime::halfConversion(llvm::StringRef name) {
  if (!name.starts_with("__"))
    return nullptr;
  return llvm::StringSwitch<void *>(name)
      .Case("__truncsfbf2", reinterpret_cast<void *>(truncateFloatToBFloat))
      .Case("__truncdfbf2", reinterpret_cast<void *>(truncateDoubleToBFloat))
      .Case("__extendbfsf2", reinterpret_cast<void *>(extendBFloatToFloat))
      .Cases({"__extendhfsf2", "__gnu_h2f_ieee"},
             reinterpret_cast<void *>(extendHalfToFloat))
      .Case("__extendhfdf2", reinterpret_cast<void *>(extendHalfToDouble))
      .Cases({"__truncsfhf2", "__gnu_f2h_ieee"},
             reinterpret_cast<void *>(truncateFloatToHalf))
      .Case("__truncdfhf2", reinterpret_cast<void *>(truncateDoubleToHalf))
      .Default(nullptr);
}
