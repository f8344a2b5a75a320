//===- FloatFitter.cpp - Expressions of floats over sizes -----------------===//

#include "NumberCodes.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/bit.h"

#include <cmath>

using namespace mlir::torch_ltc;
namespace runtime = ::torch_ltc::runtime;

static double roundTo(double value, unsigned bits) {
  return bits == 32 ? double(float(value)) : value;
}

/// Whether a factor is a number of blocks. The number of blocks times their
/// length is nearly the size, and a rounded float can't distinguish the two.
bool NumberFitter::hasBlocks(const Monomial &monomial) const {
  return llvm::any_of(monomial.factors,
                      [&](unsigned factor) { return bases[factor].isBlocks; });
}

/// Fits a float whose value is an integer. Several integers are rounded to a
/// large float, so a float32 must be small in all samples. A float64 must be
/// small in one, which determines the offset. The others determine the product,
/// because the stand-ins of different products differ by more than a rounding.
std::optional<NumberCode> NumberFitter::fitRounded(const FloatSamples &number,
                                                   unsigned bits) const {
  auto isBelow = [](double limit) {
    return [limit](double value) { return std::abs(value) < limit; };
  };
  bool isKnown = bits == 32 ? llvm::all_of(number, isBelow(0x1p24))
                            : llvm::any_of(number, isBelow(0x1p53)) &&
                                  llvm::all_of(number, isBelow(0x1p62));
  if (!isKnown)
    return std::nullopt;
  for (const Monomial &monomial : monomials) {
    double factor = std::round(number[0] / double(monomial.values[0]));
    if (factor == 0 || hasBlocks(monomial))
      continue;
    for (double offset : {0.0, -1.0, 1.0, -2.0, 2.0, -3.0, 3.0}) {
      bool isFine = true;
      for (unsigned i = 0; i < kNumSamples; ++i) {
        auto exact = __int128(factor) * monomial.values[i] + __int128(offset);
        isFine &= roundTo(double(exact), bits) == number[i];
      }
      if (!isFine)
        continue;
      NumberCode code =
          shifted(scaled(codeOf(monomial), int64_t(factor)), int64_t(offset));
      code.push_back(bits == 32 ? runtime::FLOAT32_BITS
                                : runtime::FLOAT64_BITS);
      return code;
    }
  }
  return std::nullopt;
}

/// Fits the quotient of two sizes, or of a size and a constant, as in the
/// resizing of images.
std::optional<NumberCode> NumberFitter::fitRatio(const FloatSamples &number,
                                                 unsigned bits) const {
  double maxExact = bits == 32 ? 0x1p22 : 0x1p51;
  auto isQuotient = [&](const SizeSamples &a, const SizeSamples &b) {
    for (unsigned i = 0; i < kNumSamples; ++i)
      if (double(a[i]) >= maxExact || double(b[i]) >= maxExact ||
          roundTo(double(a[i]) / double(b[i]), bits) != number[i])
        return false;
    return true;
  };
  for (const Base &a : bases) {
    if (a.isBlocks)
      continue;
    NumberCode numerator = a.code;
    numerator.push_back(runtime::FLOAT64_BITS);
    runtime::NumberOp quotient = bits == 32 ? runtime::FLOAT32_QUOTIENT_BITS
                                            : runtime::FLOAT64_QUOTIENT_BITS;
    auto divisor = int64_t(std::round(double(a.values[0]) / number[0]));
    if (divisor > 1 && isQuotient(a.values, everywhere(divisor)))
      return apply(quotient, std::move(numerator), constant(divisor));
    for (const Base &b : bases)
      if (!b.isBlocks && isQuotient(a.values, b.values))
        return apply(quotient, std::move(numerator), b.code);
  }
  return std::nullopt;
}

/// Returns the float that, divided by `divisor` and rounded to a float, is
/// `number` in all samples: the range of a `linspace`, whose distances are this
/// float divided by a size. Returns none if there are several such floats near
/// the products of number and divisor.
static std::optional<float> onlyNumerator(const FloatSamples &number,
                                          const FloatSamples &divisor) {
  constexpr int kMaxDistance = 4; // in units of the last place
  std::optional<float> found;
  auto candidate = float(number[0] * divisor[0]);
  for (int i = 0; i < kMaxDistance; ++i)
    candidate = std::nextafterf(candidate, -HUGE_VALF);
  for (int i = -kMaxDistance; i <= kMaxDistance; ++i) {
    bool fits = candidate != 0 && std::isfinite(candidate);
    for (unsigned s = 0; s < kNumSamples; ++s)
      fits &= roundTo(double(candidate) / divisor[s], 32) == number[s];
    if (fits && found)
      return std::nullopt;
    if (fits)
      found = candidate;
    candidate = std::nextafterf(candidate, HUGE_VALF);
  }
  return found;
}

/// Fits c / m, where c is a constant and m is a product, or a product plus or
/// minus 1; or m / (m - 1), which makes a variance unbiased.
std::optional<NumberCode> NumberFitter::fitFraction(const FloatSamples &number,
                                                    unsigned bits) const {
  runtime::NumberOp quotient = bits == 32 ? runtime::FLOAT32_QUOTIENT_BITS
                                          : runtime::FLOAT64_QUOTIENT_BITS;
  auto isQuotient = [&](const FloatSamples &numerator,
                        const FloatSamples &divisor) {
    for (unsigned i = 0; i < kNumSamples; ++i)
      if (roundTo(numerator[i] / divisor[i], bits) != number[i])
        return false;
    return true;
  };
  for (const Monomial &monomial : monomials) {
    // c / m and c / (m + 1) must differ after rounding.
    double exact = bits == 32 ? 0x1p22 : 0x1p51;
    if (hasBlocks(monomial) || double(monomial.values[0]) >= exact)
      continue;
    for (int64_t factor :
         {1,  2,  3,  4,  5,  6,   7,   8,   10,  12,  16,  20,
          24, 32, 48, 64, 96, 100, 128, 256, 384, 512, 768, 1024})
      for (int64_t offset : {0, -1, 1}) {
        FloatSamples product, divisor;
        for (unsigned i = 0; i < kNumSamples; ++i) {
          product[i] = double(monomial.values[i]) * double(factor);
          divisor[i] = product[i] + double(offset);
        }
        NumberCode code = scaled(codeOf(monomial), factor);
        if (offset == -1 && isQuotient(product, divisor)) {
          NumberCode numerator = code;
          numerator.push_back(runtime::FLOAT64_BITS);
          return apply(quotient, std::move(numerator), shifted(code, offset));
        }
        auto fraction = [&](double c) {
          return apply(quotient, constant(llvm::bit_cast<int64_t>(c)),
                       shifted(code, offset));
        };
        for (double c :
             {1.0, -1.0, 2.0, -2.0, 0.5, std::round(number[0] * divisor[0])})
          if (c != 0 && isQuotient(everywhere(c), divisor))
            return fraction(c);
        if (bits != 32 || factor != 1)
          continue;
        std::optional<float> found = onlyNumerator(number, divisor);
        if (found)
          return fraction(*found);
      }
  }
  return std::nullopt;
}

std::optional<NumberCode> NumberFitter::fitFloat(const FloatSamples &number,
                                                 unsigned bits) const {
  if (std::optional<NumberCode> code = fitRounded(number, bits))
    return code;
  if (std::optional<NumberCode> code = fitFraction(number, bits))
    return code;
  return fitRatio(number, bits);
}
