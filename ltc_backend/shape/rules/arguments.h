//===- arguments.h - The arguments of a shape rule --------------*- C++ -*-===//
//
// A thin view of the boxed arguments of one call. Positions are those of the
// schema; a rule for ops with different schemas looks its arguments up by name.
//
//===----------------------------------------------------------------------===//

#ifndef TORCH_LTC_SHAPE_RULES_ARGUMENTS_H
#define TORCH_LTC_SHAPE_RULES_ARGUMENTS_H

#include "shape/shape_inference.h"

#include <ATen/core/Tensor.h>

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>

namespace torch_ltc {

using Sizes = c10::SmallVector<int64_t, 6>;
using SizesRef = c10::ArrayRef<int64_t>;

class Arguments {
public:
  Arguments(const c10::FunctionSchema &schema,
            c10::ArrayRef<c10::IValue> values)
      : schema(schema), values(values) {}

  size_t size() const { return values.size(); }
  const c10::IValue &operator[](size_t i) const { return values[i]; }
  std::string_view name(size_t i) const { return schema.arguments()[i].name(); }
  /// The op's name without namespace and overload: "sum" for
  /// aten::sum.dim_IntList.
  std::string opName() const;

  /// Position of the argument with this name, unless it is None.
  std::optional<size_t> find(std::string_view wanted) const {
    for (size_t i = 0; i < values.size(); ++i)
      if (name(i) == wanted)
        return values[i].isNone() ? std::nullopt : std::optional<size_t>(i);
    return std::nullopt;
  }

  /// Whether a number passed as argument `i` is an operand. alpha, weights and
  /// slopes aren't.
  bool isOperand(size_t i) const { return isPromotedNumber(name(i)); }

  bool has(size_t i) const {
    return !values[i].isNone() &&
           !(values[i].isTensor() && !values[i].toTensor().defined());
  }
  const at::Tensor &tensor(size_t i) const { return values[i].toTensor(); }
  SizesRef sizes(size_t i) const { return tensor(i).sizes(); }
  int64_t rank(size_t i) const { return tensor(i).dim(); }
  at::ScalarType dtype(size_t i) const { return tensor(i).scalar_type(); }

  /// The value of an int, or of a SymInt that isn't symbolic.
  int64_t integer(size_t i) const;
  std::optional<int64_t> optionalInteger(size_t i) const {
    return has(i) ? std::optional<int64_t>(integer(i)) : std::nullopt;
  }
  bool flag(size_t i) const { return values[i].toBool(); }
  bool flag(std::string_view wanted) const {
    std::optional<size_t> position = find(wanted);
    return position && flag(*position);
  }
  /// The values of a list of ints; a single int counts as a list of one.
  Sizes integers(size_t i) const;
  /// The values of a list of ints; a single value is repeated `count` times.
  Sizes integers(size_t i, size_t count) const;

private:
  const c10::FunctionSchema &schema;
  c10::ArrayRef<c10::IValue> values;
};

/// Normalizes `dim`, which counts from the end if it is negative; rank 0 is
/// treated as rank 1. Throws torch's IndexError if `dim` is out of range.
int64_t dimFromFront(int64_t dim, int64_t rank);

ResultShape &addResult(ResultShapes &results, at::ScalarType dtype,
                       SizesRef sizes);
/// Adds a result that the op leaves undefined.
void addUndefined(ResultShapes &results);

int64_t numElements(SizesRef sizes);

/// Broadcasts `sizes` into `result`. Throws c10::Error with torch's message if
/// they don't match.
void broadcastInto(Sizes &result, SizesRef sizes);

/// Throws c10::Error with torch's message unless `sizes` can be expanded to
/// `target`.
void checkExpandable(SizesRef sizes, SizesRef target);

/// Throws unless all sizes are non-negative.
void checkNonNegative(SizesRef sizes);

// The lowerings rely on the checks below. A call for which a rule throws runs
// eagerly (tracing/trace.cpp): eager returns a result or raises its own error.

/// Throws unless tensor `i`, if it exists, has exactly these sizes.
void checkSizes(const Arguments &arguments, size_t i, SizesRef sizes);
/// Throws unless all of the `tensors` that exist have the same dtype.
void checkSameDType(const Arguments &arguments,
                    std::initializer_list<size_t> tensors);
/// Throws unless all of the `tensors` that exist have the same floating-point
/// dtype.
void checkFloating(const Arguments &arguments,
                   std::initializer_list<size_t> tensors);

} // namespace torch_ltc

#endif // TORCH_LTC_SHAPE_RULES_ARGUMENTS_H
