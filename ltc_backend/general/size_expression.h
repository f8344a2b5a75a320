//===- size_expression.h - Numbers computed from sizes ----------*- C++ -*-===//
//
// The expression that gives a number of a trace for all sizes:
//
//   floor((factor * product + summand) / (divisor * quotient))
//     + sign * addend + offset
//
// `product`, `quotient` and `addend` are symbols, sizes of values that precede
// the number in the trace, or derived terms, which are expressions of symbols
// and other derived terms. In `view(b, c * h)` after a convolution, the second
// number is the product of two sizes of the view's operand, regardless of how
// these sizes follow from the symbols.
//
//===----------------------------------------------------------------------===//

#ifndef TORCH_LTC_GENERAL_SIZE_EXPRESSION_H
#define TORCH_LTC_GENERAL_SIZE_EXPRESSION_H

#include <c10/util/ArrayRef.h>
#include <c10/util/SmallVector.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace torch_ltc {

struct SizeTerm {
  enum class Kind : uint8_t { Symbol, Derived, Size };
  Kind kind = Kind::Symbol;
  uint32_t index = 0; ///< of a size: in `TraceNumbers::sizes`

  friend bool operator==(const SizeTerm &, const SizeTerm &) = default;
};

inline SizeTerm sizeTerm(uint32_t size) {
  return {.kind = SizeTerm::Kind::Size, .index = size};
}

/// The values of all terms.
struct TermValues {
  c10::ArrayRef<int64_t> symbols, derived, sizes;
};

struct SizeExpression {
  int64_t factor = 1, divisor = 1, summand = 0, offset = 0, sign = 0;
  c10::SmallVector<SizeTerm, 2> product;
  std::optional<SizeTerm> quotient, addend;

  static SizeExpression constant(int64_t value) {
    SizeExpression result;
    result.factor = 0;
    result.offset = value;
    return result;
  }
  static SizeExpression of(SizeTerm term, int64_t factor = 1) {
    SizeExpression result;
    result.factor = factor;
    result.product.push_back(term);
    return result;
  }
  bool operator==(const SizeExpression &) const = default;
  bool isConstant() const { return factor == 0; }
  /// Whether the expression is a single term.
  bool isTerm() const {
    return factor == 1 && divisor == 1 && summand == 0 && offset == 0 &&
           product.size() == 1 && !quotient && !addend;
  }

  /// Returns none if the computation overflows, divides by zero, or needs a
  /// size that isn't known.
  std::optional<int64_t> evaluate(const TermValues &values) const;
  /// Text such as "2*s0 + 1".
  std::string text(const std::function<std::string(SizeTerm)> &name) const;
};

/// The values of one number in several traces.
using Column = c10::SmallVector<int64_t, 4>;

/// A term with its values in the traces.
struct SizeCandidate {
  SizeTerm term;
  Column values;
};

/// Which relations between numbers are tried. The more relations are tried, the
/// more hold in two traces by coincidence.
enum class Relations : uint8_t {
  Equal, ///< equal sizes
  Few,   ///< as `Equal`, and small differences; for arguments also multiples
         ///< and products
  Some,  ///< only for arguments: as `Few`, and quotients and sums
  Many   ///< multiples, products, sums, quotients and any differences
};

/// Fits an expression to an integer among an op's arguments. `operands`: the
/// sizes of each operand of the op; `others`: symbols, derived terms, and sizes
/// of preceding values. Returns the simplest expression that holds in all
/// traces, or none if no known form does.
std::optional<SizeExpression>
fitArgument(const Column &numbers,
            c10::ArrayRef<std::vector<SizeCandidate>> operands,
            c10::ArrayRef<SizeCandidate> others, Relations relations);

/// Fits an expression to a size of a parameter. No op of the graph computes
/// such a size, but Python code may have computed it from other sizes.
std::optional<SizeExpression>
fitParameterSize(const Column &numbers, c10::ArrayRef<SizeCandidate> symbols,
                 Relations relations);

} // namespace torch_ltc

#endif // TORCH_LTC_GENERAL_SIZE_EXPRESSION_H
