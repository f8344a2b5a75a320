//===- NumberFitter.cpp - Expressions of numbers over sizes ---------------===//

#include "NumberCodes.h"

#include "executable.pb.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Sequence.h"
#include "llvm/ADT/bit.h"
#include "llvm/Support/MathExtras.h"

#include <algorithm>
#include <cstdlib>

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

bool mlir::torch_ltc::replaceCode(NumberCode &code,
                                  const CodeReplacement &replacement) {
  const auto &[shared, own] = replacement;
  bool isFound = false;
  auto begin = code.begin();
  while (true) {
    auto found = std::search(begin, code.end(), shared.begin(), shared.end());
    if (found == code.end())
      return isFound;
    isFound = true;
    const auto offset = found - code.begin();
    found = code.erase(found, found + ptrdiff_t(shared.size()));
    code.insert(found, own.begin(), own.end());
    begin = code.begin() + offset + ptrdiff_t(own.size());
  }
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
  NumberCode code{runtime::SYMBOL, int64_t(numSymbols + index)};
  if (llvm::is_contained(number, 0))
    numbersWithZeros.try_emplace(number, std::move(code));
  else if (!isConstant(number) && bases.size() < kMaxBases &&
           !fitProduct(number))
    addBase(number, std::move(code));
}

void NumberFitter::addSize(const SizeSamples &size) {
  if (isConstant(size) || bases.size() >= kMaxBases ||
      llvm::is_contained(size, 0) || fitProduct(size))
    return;
  std::optional<NumberCode> code = fitLinear(size);
  if (!code)
    code = fitSum(size);
  if (!code)
    code = fitQuotient(size);
  if (code)
    addBase(size, std::move(*code));
}

std::optional<KernelBlocks> NumberFitter::addBlocks(const SizeSamples &size,
                                                    int64_t block) {
  if (isConstant(size))
    return std::nullopt;
  SizeSamples count;
  for (unsigned i = 0; i < kNumSamples; ++i)
    count[i] = llvm::divideCeil(size[i], block);
  std::optional<NumberCode> code = fit(size);
  if (!code)
    return std::nullopt;
  KernelBlocks own{
      count, apply(runtime::CEIL_DIVIDE, std::move(*code), constant(block)),
      std::nullopt};
  std::optional<NumberCode> equal =
      isConstant(count) ? constant(count[0]) : fitProduct(count);
  if (!equal) {
    addBase(count, own.code, /*isBlocks=*/true);
    return own;
  }
  if (*equal == own.code)
    return own;
  CodeReplacement replacement{std::move(*equal), own.code};
  // A longer code has no accidental occurrences in others.
  if (llvm::is_contained(replacement.shared, int64_t(runtime::CEIL_DIVIDE)))
    own.replacement = std::move(replacement);
  else
    assumeEqual(std::move(replacement));
  return own;
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

/// Returns the code of a multiple of the monomial that has these values.
std::optional<NumberCode>
NumberFitter::multipleOf(const Monomial &monomial,
                         const SizeSamples &number) const {
  int64_t factor = number[0] / monomial.values[0];
  std::optional<SizeSamples> product =
      multiply(monomial.values, everywhere(factor));
  if (factor == 0 || !product || *product != number)
    return std::nullopt;
  return scaled(codeOf(monomial), factor);
}

/// Fits a constant times a product of bases.
std::optional<NumberCode>
NumberFitter::fitProduct(const SizeSamples &number) const {
  for (const Monomial &monomial : monomials)
    if (std::optional<NumberCode> code = multipleOf(monomial, number))
      return code;
  return std::nullopt;
}

/// If the number is a multiple of the numbers of blocks of several sizes,
/// binding must check that these multiples are equal: of 2 * ceil(2n / 1024)
/// and 4 * ceil(n / 1024), which are equal in many samples, either may be the
/// number.
void NumberFitter::assumeEqualBlocks(const SizeSamples &number) {
  std::optional<NumberCode> first;
  for (const Monomial &monomial : smallMonomials()) {
    if (!hasBlocks(monomial) || monomial.values == number)
      continue;
    std::optional<NumberCode> code = multipleOf(monomial, number);
    if (code && first)
      assumeEqual({*first, *code});
    else if (code)
      first = std::move(code);
  }
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
  if (auto found = numbersWithZeros.find(number);
      found != numbersWithZeros.end())
    return entry->second = found->second;
  std::optional<NumberCode> code = fitProduct(number);
  if (code)
    assumeEqualBlocks(number);
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
