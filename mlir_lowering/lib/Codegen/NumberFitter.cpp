//===- NumberFitter.cpp - Expressions of numbers over sizes ---------------===//

#include "torch_ltc/Codegen/NumberFitter.h"

#include "executable.pb.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Sequence.h"
#include "llvm/ADT/bit.h"
#include "llvm/Support/MathExtras.h"

#include <cmath>

using namespace mlir::torch_ltc;
using llvm::ArrayRef;
namespace runtime = ::torch_ltc::runtime;

namespace {

/// Maximum number of factors of a product: batch, height, width and one more.
/// `fitNested` divides longer products by bases, at most this many times.
constexpr unsigned kMaxFactors = 4;
/// A larger constant is more likely a coincidence than an offset. The first
/// limit is for sums with a multiple or a quotient of one size, the second for
/// other sums.
constexpr int64_t kMaxOffset = int64_t(1) << 20;
constexpr int64_t kMaxSmallOffset = 4096;
/// More bases would make the search slow, and coincidences likely.
constexpr size_t kMaxBases = 16;
/// Constant factors of the first product of a sum.
constexpr int64_t kSmallFactors[] = {1, -1, 2, 3, 4};
constexpr int64_t kStrides[] = {2, 3, 4, 5, 6, 7, 8};

bool isConstant(const SizeSamples &sample) { return llvm::all_equal(sample); }

std::optional<SizeSamples> multiply(const SizeSamples &a,
                                    const SizeSamples &b) {
  SizeSamples result;
  for (unsigned i = 0; i < kNumSamples; ++i)
    if (llvm::MulOverflow(a[i], b[i], result[i]))
      return std::nullopt;
  return result;
}

/// Returns samples that are all `value`.
template <typename T> std::array<T, kNumSamples> everywhere(T value) {
  std::array<T, kNumSamples> result;
  result.fill(value);
  return result;
}

double roundTo(double value, unsigned bits) {
  return bits == 32 ? double(float(value)) : value;
}

NumberCode constant(int64_t value) { return {runtime::CONSTANT, value}; }

NumberCode apply(runtime::NumberOp op, NumberCode a, const NumberCode &b) {
  a.insert(a.end(), b.begin(), b.end());
  a.push_back(op);
  return a;
}

NumberCode scaled(NumberCode code, int64_t factor) {
  return factor == 1
             ? code
             : apply(runtime::MULTIPLY, std::move(code), constant(factor));
}

NumberCode shifted(NumberCode code, int64_t offset) {
  return offset == 0 ? code
                     : apply(runtime::ADD, std::move(code), constant(offset));
}

/// Returns `factor` and `offset` with number = factor * base + offset in all
/// samples.
std::optional<std::pair<int64_t, int64_t>> solve(const SizeSamples &base,
                                                 const SizeSamples &number) {
  int64_t width = base[1] - base[0];
  if (width == 0 || (number[1] - number[0]) % width != 0)
    return std::nullopt;
  int64_t factor = (number[1] - number[0]) / width;
  if (factor == 0)
    return std::nullopt;
  int64_t offset = number[0] - factor * base[0];
  if (std::abs(offset) > kMaxOffset)
    return std::nullopt;
  for (unsigned i = 0; i < kNumSamples; ++i)
    if (__int128(factor) * base[i] + offset != number[i])
      return std::nullopt;
  return std::pair(factor, offset);
}

} // namespace

template <typename T>
static std::string textOf(const std::array<T, kNumSamples> &number) {
  std::string text;
  for (T value : ArrayRef(number).drop_back())
    text += (text.empty() ? "" : ", ") + std::to_string(value);
  return text + " and " + std::to_string(number.back()) +
         " at the stand-ins, which isn't a known function of them";
}

std::string mlir::torch_ltc::unknownNumber(const SizeSamples &number) {
  return textOf(number);
}

std::string mlir::torch_ltc::unknownNumber(const FloatSamples &number) {
  return textOf(number);
}

NumberFitter::NumberFitter(ArrayRef<SizeSamples> standIns)
    : numSymbols(standIns.size()) {
  for (auto [i, values] : llvm::enumerate(standIns))
    addBase(values, {runtime::SYMBOL, int64_t(i)});
}

void NumberFitter::addBase(const SizeSamples &values, NumberCode code,
                           bool isBlocks) {
  unsigned number = bases.size();
  bases.push_back({values, std::move(code), isBlocks});
  // Add the products of the new base with itself and with all known products.
  std::vector<Monomial> added{{values, {number}}};
  for (const Monomial &other : monomials)
    if (other.factors.size() < kMaxFactors)
      if (std::optional<SizeSamples> product = multiply(other.values, values)) {
        added.push_back({*product, other.factors});
        added.back().factors.push_back(number);
      }
  for (size_t i = 0; i < added.size(); ++i) {
    if (added[i].factors.size() >= kMaxFactors)
      continue;
    if (std::optional<SizeSamples> product =
            multiply(added[i].values, values)) {
      Monomial power{*product, added[i].factors};
      power.factors.push_back(number);
      added.push_back(std::move(power));
    }
  }
  llvm::append_range(monomials, added);
  llvm::stable_sort(monomials, [](const Monomial &a, const Monomial &b) {
    return a.factors.size() < b.factors.size();
  });
  known.clear();
}

void NumberFitter::addTraced(const SizeSamples &number, unsigned index) {
  if (!isConstant(number) && bases.size() < kMaxBases && !fitProduct(number))
    addBase(number, {runtime::SYMBOL, int64_t(numSymbols + index)});
}

void NumberFitter::addSize(const SizeSamples &size) {
  if (isConstant(size) || bases.size() >= kMaxBases || fitProduct(size))
    return;
  std::optional<NumberCode> code = fitLinear(size);
  if (!code)
    code = fitSum(size);
  if (!code)
    code = fitQuotient(size);
  if (code)
    addBase(size, std::move(*code));
}

void NumberFitter::addBlocks(const SizeSamples &size, int64_t block) {
  if (isConstant(size))
    return;
  SizeSamples blocks;
  for (unsigned i = 0; i < kNumSamples; ++i)
    blocks[i] = llvm::divideCeil(size[i], block);
  std::optional<NumberCode> code = fit(size);
  if (!code)
    return;
  NumberCode own =
      apply(runtime::CEIL_DIVIDE, std::move(*code), constant(block));
  std::optional<NumberCode> equal =
      isConstant(blocks) ? constant(blocks[0]) : fitProduct(blocks);
  if (!equal)
    addBase(blocks, std::move(own), /*isBlocks=*/true);
  else if (*equal != own)
    equalNumbers.emplace_back(std::move(own), std::move(*equal));
}

NumberCode NumberFitter::codeOf(const Monomial &monomial) const {
  NumberCode code = bases[monomial.factors[0]].code;
  for (unsigned factor : ArrayRef(monomial.factors).drop_front())
    code = apply(runtime::MULTIPLY, std::move(code), bases[factor].code);
  return code;
}

ArrayRef<NumberFitter::Monomial> NumberFitter::smallMonomials() const {
  return ArrayRef(monomials).take_while(
      [](const Monomial &monomial) { return monomial.factors.size() <= 2; });
}

/// Fits a constant times a product of bases.
std::optional<NumberCode>
NumberFitter::fitProduct(const SizeSamples &number) const {
  for (const Monomial &monomial : monomials) {
    int64_t factor = number[0] / monomial.values[0];
    std::optional<SizeSamples> product =
        multiply(monomial.values, everywhere(factor));
    if (factor != 0 && product && *product == number)
      return scaled(codeOf(monomial), factor);
  }
  return std::nullopt;
}

/// Fits a constant times a product of bases, plus a constant.
std::optional<NumberCode>
NumberFitter::fitLinear(const SizeSamples &number) const {
  for (const Monomial &monomial : monomials)
    if (auto solution = solve(monomial.values, number))
      if (monomial.factors.size() == 1 ||
          std::abs(solution->second) <= kMaxSmallOffset)
        return shifted(scaled(codeOf(monomial), solution->first),
                       solution->second);
  return std::nullopt;
}

/// Fits a sum of two products with small factors, plus a small constant.
std::optional<NumberCode>
NumberFitter::fitSum(const SizeSamples &number) const {
  constexpr int64_t kMaxFactor = 4096;
  for (const Monomial &a : smallMonomials()) {
    for (int64_t factor : kSmallFactors) {
      SizeSamples rest;
      bool isFine = true;
      for (unsigned i = 0; i < kNumSamples; ++i)
        isFine &= !llvm::SubOverflow(number[i], factor * a.values[i], rest[i]);
      if (!isFine || isConstant(rest))
        continue;
      for (const Monomial &b : smallMonomials()) {
        auto solution = solve(b.values, rest);
        if (!solution || std::abs(solution->first) > kMaxFactor ||
            std::abs(solution->second) > kMaxSmallOffset)
          continue;
        NumberCode sum = apply(runtime::ADD, scaled(codeOf(a), factor),
                               scaled(codeOf(b), solution->first));
        return shifted(std::move(sum), solution->second);
      }
    }
  }
  return std::nullopt;
}

/// Fits a multiple of a sum of two products, plus a small constant: for
/// example, the bytes of two batches' joined rows.
std::optional<NumberCode>
NumberFitter::fitMultipleOfSum(const SizeSamples &number) const {
  for (const Monomial &a : smallMonomials()) {
    for (int64_t factor : kSmallFactors) {
      std::optional<SizeSamples> first = multiply(a.values, everywhere(factor));
      if (!first)
        continue;
      for (const Monomial &b : smallMonomials()) {
        SizeSamples sum;
        bool isFine = true;
        for (unsigned i = 0; i < kNumSamples; ++i)
          isFine &= !llvm::AddOverflow((*first)[i], b.values[i], sum[i]);
        auto solution = isFine ? solve(sum, number) : std::nullopt;
        if (!solution || std::abs(solution->second) > kMaxSmallOffset)
          continue;
        return shifted(
            scaled(apply(runtime::ADD, scaled(codeOf(a), factor), codeOf(b)),
                   solution->first),
            solution->second);
      }
    }
  }
  return std::nullopt;
}

/// Fits (a number that can be fitted) times a base, plus a small constant: for
/// example, the offset of the last element of a reversed array, which is
/// (rows - 1) * columns + columns - 1.
std::optional<NumberCode> NumberFitter::fitNested(const SizeSamples &number,
                                                  unsigned depth) const {
  for (int64_t offset : {0, -1, 1, -2, 2})
    for (const Base &base : bases) {
      SizeSamples quotient;
      bool isMultiple = true;
      for (unsigned i = 0; i < kNumSamples && isMultiple; ++i) {
        int64_t rest;
        isMultiple = !llvm::SubOverflow(number[i], offset, rest) &&
                     rest % base.values[i] == 0;
        if (isMultiple)
          quotient[i] = rest / base.values[i];
      }
      if (!isMultiple || isConstant(quotient))
        continue;
      std::optional<NumberCode> code = fitLinear(quotient);
      if (!code)
        code = fitSum(quotient);
      if (!code && depth < kMaxFactors)
        code = fitNested(quotient, depth + 1);
      if (code)
        return shifted(apply(runtime::MULTIPLY, std::move(*code), base.code),
                       offset);
    }
  return std::nullopt;
}

/// Fits the number of positions of a strided window.
std::optional<NumberCode>
NumberFitter::fitQuotient(const SizeSamples &number) const {
  for (const Base &base : bases)
    for (int64_t divisor : kStrides)
      if (std::optional<NumberCode> code = fitWindow(number, base, divisor))
        return code;
  return std::nullopt;
}

/// Fits floor((base + shift) / divisor) + offset. Fails unless the samples
/// determine `shift` and `offset`.
std::optional<NumberCode> NumberFitter::fitWindow(const SizeSamples &number,
                                                  const Base &base,
                                                  int64_t divisor) const {
  std::optional<NumberCode> found;
  for (int64_t shift = 0; shift < divisor; ++shift) {
    SizeSamples offsets;
    for (unsigned i = 0; i < kNumSamples; ++i)
      offsets[i] = number[i] - (base.values[i] + shift) / divisor;
    if (!isConstant(offsets) || std::abs(offsets[0]) > kMaxOffset)
      continue;
    if (found)
      return std::nullopt;
    found = shifted(apply(runtime::FLOOR_DIVIDE, shifted(base.code, shift),
                          constant(divisor)),
                    offsets[0]);
  }
  return found;
}

std::optional<NumberCode> NumberFitter::fit(const SizeSamples &number) {
  std::lock_guard lock(mutex);
  auto [entry, isNew] = known.try_emplace(number, std::nullopt);
  if (!isNew)
    return entry->second;
  std::optional<NumberCode> code = fitProduct(number);
  if (!code)
    code = fitLinear(number);
  if (!code)
    code = fitQuotient(number);
  if (!code)
    code = fitSum(number);
  if (!code)
    code = fitMultipleOfSum(number);
  if (!code)
    code = fitNested(number, /*depth=*/1);
  return entry->second = code;
}

/// Whether a factor is a number of blocks. The number of blocks times their
/// length is nearly the size, and a rounded float can't distinguish the two.
bool NumberFitter::hasBlocks(const Monomial &monomial) const {
  return llvm::any_of(monomial.factors,
                      [&](unsigned factor) { return bases[factor].isBlocks; });
}

/// Fits a float whose value is an integer. Fails for large floats, to which
/// several integers are rounded.
std::optional<NumberCode> NumberFitter::fitRounded(const FloatSamples &number,
                                                   unsigned bits) const {
  double maxExact = bits == 32 ? 0x1p24 : 0x1p53;
  if (llvm::any_of(number,
                   [&](double value) { return std::abs(value) >= maxExact; }))
    return std::nullopt;
  for (const Monomial &monomial : monomials) {
    double factor = std::round(number[0] / double(monomial.values[0]));
    if (factor == 0 || hasBlocks(monomial))
      continue;
    for (double offset : {0.0, -1.0, 1.0, -2.0, 2.0, -3.0, 3.0}) {
      bool isFine = true;
      for (unsigned i = 0; i < kNumSamples; ++i)
        isFine &= factor * double(monomial.values[i]) + offset == number[i];
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

std::optional<NumberCode> NumberFitter::fitEstimate(const SizeSamples &number) {
  if (std::optional<NumberCode> code = fit(number))
    return code;
  // Find a product of as many factors as possible that grows like the number.
  for (const Monomial &monomial : llvm::reverse(monomials)) {
    int64_t factor = number[0] / monomial.values[0];
    auto isNear = [&](unsigned i) {
      double ratio = double(number[i]) / double(monomial.values[i]);
      return std::abs(ratio / double(factor) - 1) < 0.1;
    };
    if (factor != 0 && llvm::all_of(llvm::seq(kNumSamples), isNear))
      return scaled(codeOf(monomial), factor);
  }
  return std::nullopt;
}
