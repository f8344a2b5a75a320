//===- size_expression.cpp - Numbers computed from sizes ------------------===//

#include "general/size_expression.h"

#include <algorithm>
#include <numeric>

using namespace torch_ltc;

namespace {

constexpr int64_t kAnyOffset = int64_t(1) << 31;

using Candidates = c10::ArrayRef<SizeCandidate>;

bool isConstant(const Column &values) {
  return std::ranges::all_of(values, [&](int64_t v) { return v == values[0]; });
}

int64_t floorDivide(int64_t a, int64_t b) {
  int64_t quotient = a / b;
  return a % b != 0 && (a < 0) != (b < 0) ? quotient - 1 : quotient;
}

/// Returns none on overflow: values in traces are below 2^31, but products of
/// several values may not fit.
std::optional<Column> multiply(const Column &a, const Column &b) {
  Column result = a;
  for (size_t i = 0; i < a.size(); ++i)
    if (__builtin_mul_overflow(a[i], b[i], &result[i]))
      return std::nullopt;
  return result;
}

/// Returns a constant factor and divisor such that each number equals the
/// corresponding value times the factor, divided by the divisor; none if there
/// are no such constants.
std::optional<std::pair<int64_t, int64_t>> ratio(const Column &numbers,
                                                 const Column &values) {
  if (values[0] == 0 || numbers[0] == 0)
    return std::nullopt;
  int64_t common = std::gcd(numbers[0], values[0]);
  int64_t factor = numbers[0] / common, divisor = values[0] / common;
  if (divisor < 0) {
    factor = -factor;
    divisor = -divisor;
  }
  for (size_t i = 1; i < numbers.size(); ++i)
    if (__int128(numbers[i]) * divisor != __int128(values[i]) * factor)
      return std::nullopt;
  return std::pair(factor, divisor);
}

/// Tries forms in the order of the calls, and keeps the first that fits.
class Fit {
public:
  explicit Fit(const Column &numbers) : numbers(numbers) {}

  bool isFound() const { return found.has_value(); }
  std::optional<SizeExpression> take() { return std::move(found); }

  void equal(Candidates candidates) {
    for (const SizeCandidate &candidate : candidates)
      if (!found && candidate.values == numbers)
        found = SizeExpression::of(candidate.term);
  }

  /// Tries a constant multiple of a size; with `divides`, also divided by a
  /// constant.
  void multiple(Candidates candidates, bool divides) {
    for (const SizeCandidate &candidate : candidates)
      if (!found)
        multiple({candidate.term}, candidate.values, divides);
  }

  /// Tries a constant multiple of a product of several sizes of one operand.
  void productOfSubset(Candidates candidates, bool divides) {
    if (candidates.size() > 6)
      return;
    for (uint32_t set = 1; set < 1u << candidates.size() && !found; ++set) {
      c10::SmallVector<SizeTerm, 2> terms;
      std::optional<Column> product = Column(numbers.size(), 1);
      for (size_t i = 0; i < candidates.size(); ++i)
        if (set >> i & 1 && product) {
          product = multiply(*product, candidates[i].values);
          terms.push_back(candidates[i].term);
        }
      if (terms.size() > 1 && product)
        multiple(terms, *product, divides);
    }
  }

  void productOfTwo(Candidates candidates) {
    for (size_t a = 0; a < candidates.size() && !found; ++a)
      for (size_t b = a; b < candidates.size() && !found; ++b)
        if (auto product = multiply(candidates[a].values, candidates[b].values))
          multiple({candidates[a].term, candidates[b].term}, *product,
                   /*divides=*/false);
  }

  /// Tries products of three sizes, such as the elements of `x[:a * b * c]`
  /// that a `view(a, b, c)` arranges.
  void productOfThree(Candidates candidates) {
    constexpr size_t kMaxCandidatesOfThree = 16;
    candidates =
        candidates.slice(0, std::min(candidates.size(), kMaxCandidatesOfThree));
    for (size_t a = 0; a < candidates.size(); ++a)
      for (size_t b = a; b < candidates.size(); ++b)
        if (auto two = multiply(candidates[a].values, candidates[b].values))
          for (size_t c = b; c < candidates.size() && !found; ++c)
            if (multiply(*two, candidates[c].values) == numbers) {
              found = SizeExpression::of(candidates[a].term);
              found->product.push_back(candidates[b].term);
              found->product.push_back(candidates[c].term);
            }
  }

  /// Tries a multiple or a product, divided by another size.
  void quotient(Candidates candidates) {
    for (const SizeCandidate &divisor : candidates) {
      std::optional<Column> product = multiply(numbers, divisor.values);
      if (!product || found)
        continue;
      Fit inner(*product);
      inner.multiple(candidates, /*divides=*/false);
      inner.productOfTwo(candidates);
      found = inner.take();
      if (found)
        found->quotient = divisor.term;
    }
  }

  /// Tries `c * size + d` with |d| <= `limit`; c is 1 unless `anyFactor`.
  void affine(Candidates candidates, int64_t limit, bool anyFactor) {
    for (const SizeCandidate &candidate : candidates) {
      size_t other = 1; // a trace whose size differs from the first trace's
      while (other + 1 < numbers.size() &&
             candidate.values[other] == candidate.values[0])
        ++other;
      int64_t run = candidate.values[other] - candidate.values[0];
      int64_t rise = numbers[other] - numbers[0];
      if (found || run == 0 || rise % run != 0)
        continue;
      int64_t factor = rise / run;
      int64_t offset = numbers[0] - factor * candidate.values[0];
      if (factor == 0 || (!anyFactor && factor != 1) ||
          std::abs(offset) > limit)
        continue;
      SizeExpression guess = SizeExpression::of(candidate.term, factor);
      guess.offset = offset;
      accept(guess, candidate.values);
    }
  }

  /// Tries a size plus an offset. If several sizes fit, keeps the one with the
  /// smallest absolute offset.
  void offset(Candidates candidates, int64_t limit) {
    std::optional<SizeExpression> best;
    for (const SizeCandidate &candidate : candidates) {
      Fit one(numbers);
      one.affine(candidate, limit, /*anyFactor=*/false);
      if (auto guess = one.take())
        if (!best || std::abs(guess->offset) < std::abs(best->offset))
          best = guess;
    }
    if (!found)
      found = best;
  }

  /// Tries a sum or a difference of two sizes. With three or more traces, a
  /// constant may be added; with two, such a sum would often fit by
  /// coincidence.
  void sum(Candidates candidates) {
    bool mayAdd = numbers.size() > 2;
    for (const SizeCandidate &a : candidates)
      for (const SizeCandidate &b : candidates)
        for (int64_t sign : {1, -1}) {
          if (found || a.term == b.term)
            continue;
          int64_t offset = numbers[0] - a.values[0] - sign * b.values[0];
          bool holds = offset == 0 || mayAdd;
          for (size_t i = 1; i < numbers.size() && holds; ++i)
            holds = numbers[i] == a.values[i] + sign * b.values[i] + offset;
          if (!holds)
            continue;
          found = SizeExpression::of(a.term);
          found->addend = b.term;
          found->sign = sign;
          found->offset = offset;
        }
  }

  /// Tries a multiple of a size plus another size, such as a size that `chunk`
  /// divides into equal parts and a smaller last part.
  void sumWithMultiple(Candidates candidates) {
    constexpr int64_t kMostParts = 64;
    for (const SizeCandidate &part : candidates)
      for (const SizeCandidate &last : candidates) {
        int64_t rest = numbers[0] - last.values[0];
        if (found || part.values[0] == 0 || rest % part.values[0] != 0)
          continue;
        int64_t factor = rest / part.values[0];
        bool holds = factor > 1 && factor <= kMostParts;
        for (size_t i = 1; i < numbers.size() && holds; ++i)
          holds = numbers[i] == factor * part.values[i] + last.values[i];
        if (!holds)
          continue;
        found = SizeExpression::of(part.term, factor);
        found->addend = last.term;
        found->sign = 1;
      }
  }

  /// Tries a size divided by a small constant, rounded down or up.
  void rounded(Candidates candidates) {
    for (const SizeCandidate &candidate : candidates)
      for (int64_t divisor : {2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 16, 32})
        for (bool isUp : {false, true}) {
          if (found)
            return;
          SizeExpression guess = SizeExpression::of(candidate.term);
          guess.divisor = divisor;
          guess.summand = isUp ? divisor - 1 : 0;
          accept(guess, candidate.values);
        }
  }

private:
  void multiple(c10::ArrayRef<SizeTerm> terms, const Column &values,
                bool divides) {
    auto parts = ratio(numbers, values);
    if (!parts || (parts->second != 1 && !divides))
      return;
    SizeExpression guess;
    guess.factor = parts->first;
    guess.divisor = parts->second;
    guess.product.assign(terms.begin(), terms.end());
    found = guess;
  }

  /// Keeps `guess`, an expression of one term, if it holds for all `values` of
  /// the term.
  void accept(const SizeExpression &guess, const Column &values) {
    for (size_t i = 0; i < numbers.size(); ++i) {
      int64_t above = guess.factor * values[i] + guess.summand;
      if (floorDivide(above, guess.divisor) + guess.offset != numbers[i])
        return;
    }
    found = guess;
  }

  const Column &numbers;
  std::optional<SizeExpression> found;
};

} // namespace

std::optional<int64_t>
SizeExpression::evaluate(const TermValues &values) const {
  auto ofKind = [&](SizeTerm::Kind kind) {
    return kind == SizeTerm::Kind::Symbol    ? values.symbols
           : kind == SizeTerm::Kind::Derived ? values.derived
                                             : values.sizes;
  };
  auto value = [&](SizeTerm term) { return ofKind(term.kind)[term.index]; };
  if (isConstant())
    return offset;
  auto isKnown = [&](SizeTerm term) {
    return term.index < ofKind(term.kind).size();
  };
  if (!std::ranges::all_of(product, isKnown) ||
      (quotient && !isKnown(*quotient)) || (addend && !isKnown(*addend)))
    return std::nullopt;
  int64_t result = factor, below = divisor;
  for (SizeTerm term : product)
    if (__builtin_mul_overflow(result, value(term), &result))
      return std::nullopt;
  if (__builtin_add_overflow(result, summand, &result))
    return std::nullopt;
  if (quotient && __builtin_mul_overflow(below, value(*quotient), &below))
    return std::nullopt;
  if (below == 0)
    return std::nullopt;
  if (below != 1)
    result = floorDivide(result, below);
  if (addend && __builtin_add_overflow(result, sign * value(*addend), &result))
    return std::nullopt;
  if (__builtin_add_overflow(result, offset, &result))
    return std::nullopt;
  return result;
}

std::string
SizeExpression::text(const std::function<std::string(SizeTerm)> &name) const {
  if (isConstant())
    return std::to_string(offset);
  std::string result;
  if (factor == -1)
    result = "-";
  else if (factor != 1)
    result = std::to_string(factor) + "*";
  for (size_t i = 0; i < product.size(); ++i)
    result += (i ? "*" : "") + name(product[i]);
  const bool isUp = summand != 0 && summand == divisor - 1;
  if (summand && !isUp)
    result = "(" + result + (summand < 0 ? " - " : " + ") +
             std::to_string(std::abs(summand)) + ")";
  if (divisor != 1)
    result = (isUp ? "ceil(" : "floor(") + result + " / " +
             std::to_string(divisor) + ")";
  if (quotient)
    result += " / " + name(*quotient);
  if (addend)
    result += (sign < 0 ? " - " : " + ") + name(*addend);
  if (offset)
    result += (offset < 0 ? " - " : " + ") + std::to_string(std::abs(offset));
  return result;
}

std::optional<SizeExpression>
torch_ltc::fitArgument(const Column &numbers,
                       c10::ArrayRef<std::vector<SizeCandidate>> operands,
                       Candidates others, Relations relations) {
  if (isConstant(numbers))
    return SizeExpression::constant(numbers[0]);
  constexpr int64_t kSmallOffset = 16;
  Fit fit(numbers);
  auto each = [&](auto form) {
    for (const std::vector<SizeCandidate> &operand : operands)
      form(Candidates(operand));
  };
  each([&](Candidates sizes) { fit.equal(sizes); });
  fit.equal(others);
  if (relations == Relations::Equal)
    return fit.take();
  for (bool divides : {false, true}) {
    if (divides && relations == Relations::Few)
      break;
    each([&](Candidates sizes) { fit.multiple(sizes, divides); });
    each([&](Candidates sizes) { fit.productOfSubset(sizes, divides); });
    fit.multiple(others, divides);
  }
  each([&](Candidates sizes) { fit.affine(sizes, kSmallOffset, false); });
  fit.affine(others, kSmallOffset, false);
  if (relations == Relations::Few)
    return fit.take();
  each([&](Candidates sizes) { fit.rounded(sizes); });
  if (!fit.isFound())
    fit.productOfTwo(others);
  if (!fit.isFound())
    fit.sum(others);
  if (!fit.isFound() && relations == Relations::Many) {
    fit.sumWithMultiple(others);
    fit.productOfThree(others);
  }
  fit.rounded(others);
  if (relations == Relations::Some)
    return fit.take();
  each([&](Candidates sizes) { fit.affine(sizes, kAnyOffset, true); });
  fit.affine(others, kAnyOffset, true);
  if (!fit.isFound())
    fit.quotient(others);
  return fit.take();
}

std::optional<SizeExpression> torch_ltc::fitParameterSize(const Column &numbers,
                                                          Candidates symbols,
                                                          Relations relations) {
  if (isConstant(numbers))
    return SizeExpression::constant(numbers[0]);
  Fit fit(numbers);
  fit.equal(symbols);
  if (relations == Relations::Few) {
    fit.offset(symbols, /*limit=*/2);
    return fit.take();
  }
  fit.multiple(symbols, /*divides=*/false);
  if (!fit.isFound())
    fit.productOfTwo(symbols);
  if (!fit.isFound())
    fit.sum(symbols);
  fit.offset(symbols, kAnyOffset);
  return fit.take();
}
