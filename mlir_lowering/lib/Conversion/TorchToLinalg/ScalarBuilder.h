//===- ScalarBuilder.h - Arithmetic on torch scalars ------------*- C++ -*-===//
//
// Emits arith and math ops on one element, with the semantics of torch's CPU
// kernels for each dtype.
//
// A *dtype* is the element type of a `!torch.vtensor`, including its signedness
// (si64, ui8, i1, f32, ...). A value of a dtype has the dtype's *storage type*
// (i64, i8, i1, f32, ...), which is signless, so code that handles values must
// also pass their dtypes.
//
//===----------------------------------------------------------------------===//

#ifndef TORCH_LTC_CONVERSION_TORCHTOLINALG_SCALARBUILDER_H
#define TORCH_LTC_CONVERSION_TORCHTOLINALG_SCALARBUILDER_H

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Builders.h"

#include <numbers>

namespace mlir::torch_ltc {

/// The signless type in which values of `dtype` are stored.
Type storageTypeOf(Type dtype);

/// The dtype in which torch's CPU kernels compute on `dtype`: float32 for the
/// 16-bit floats, otherwise `dtype` itself.
Type computeDtypeOf(Type dtype);

/// The result of torch.promote_types.
Type promoteDtypes(Type a, Type b);

bool isBool(Type dtype);
bool isUnsigned(Type dtype);
/// The category of `dtype` in type promotion: 0 bool, 1 integer, 2 float.
int dtypeKind(Type dtype);

enum class Comparison { eq, ne, lt, le, gt, ge };

/// Emits scalar code at one insertion point. Operands of arithmetic have the
/// dtype `dtype`.
class ScalarBuilder {
public:
  ScalarBuilder(OpBuilder &builder, Location loc, Type dtype)
      : builder(builder), loc(loc), dtype(dtype) {}

  OpBuilder &builder;
  Location loc;
  /// Dtype of the operands and results of the arithmetic below.
  Type dtype;

  bool isFloat() const { return isa<FloatType>(dtype); }

  /// A constant of `dtype`; the value is converted as torch converts a Python
  /// number.
  Value constant(double value);
  Value constant(int value) { return constant(static_cast<double>(value)); }
  Value integer(int64_t value);
  Value boolean(bool value);
  Value index(int64_t value);
  /// Smallest and greatest value of `dtype`, infinities for floats.
  Value lowest();
  Value highest();

  Value add(Value a, Value b);
  Value sub(Value a, Value b);
  Value mul(Value a, Value b);
  /// The quotient: The quotient: that of IEEE 754 for floats; for integers,
  /// rounded towards zero, without undefined behavior (x / 0 is x, and the
  /// lowest value / -1 wraps).
  Value div(Value a, Value b);
  /// The quotient, rounded towards minus infinity, with torch's correction for
  /// floats. Each step is rounded to the dtype `step`, if given.
  Value floorDiv(Value a, Value b, Type step = {});
  /// Remainders with the sign of the dividend (C's fmod) and of the divisor
  /// (Python's %).
  Value truncRemainder(Value a, Value b);
  Value floorRemainder(Value a, Value b);
  Value neg(Value a);
  Value abs(Value a);
  /// Whether a float's sign bit is set, as in -0.0 and some NaNs.
  Value signBit(Value a);
  Value copySign(Value magnitude, Value sign);
  Value square(Value a) { return mul(a, a); }
  /// The greater or smaller operand; NaN if either operand is NaN.
  Value maximum(Value a, Value b);
  Value minimum(Value a, Value b);
  /// `maximum` and `minimum` of torch's elementwise kernels, which return `b`
  /// if both operands are zeros, whatever their signs.
  Value laterMaximum(Value a, Value b);
  Value laterMinimum(Value a, Value b);
  /// `a`, limited by the bound; a zero `a` keeps its sign at a zero bound.
  Value atLeast(Value a, Value bound) { return laterMaximum(bound, a); }
  Value atMost(Value a, Value bound) { return laterMinimum(bound, a); }
  /// The greater or smaller operand; if one is NaN, the other operand.
  Value maxNumber(Value a, Value b);
  Value minNumber(Value a, Value b);

  Value compare(Comparison comparison, Value a, Value b);
  Value isNan(Value a);
  Value select(Value condition, Value yes, Value no);
  Value logicalAnd(Value a, Value b);
  Value logicalOr(Value a, Value b);
  Value logicalNot(Value a);
  /// Whether a value of `dtype` isn't zero.
  Value truth(Value a);

  /// Rounds `value` to the dtype `narrow`, and converts it back to `dtype`.
  Value roundedTo(Type narrow, Value value);
  /// Converts a value of dtype `from` to `to`, like `tensor.to(dtype)` on CPU.
  Value convert(Value value, Type from, Type to);

  template <typename MathOp> Value unary(Value a) {
    return MathOp::create(builder, loc, a);
  }
  template <typename MathOp> Value binary(Value a, Value b) {
    return MathOp::create(builder, loc, a, b);
  }
  Value exp(Value a) { return unary<math::ExpOp>(a); }
  Value log(Value a) { return logarithm<math::LogOp>(a, std::numbers::ln2); }
  Value log2(Value a) { return logarithm<math::Log2Op>(a, 1); }

private:
  /// A logarithm that is also correct for denormal numbers, which MLIR 22's
  /// polynomials replace by the smallest normal number. `ofTwo` is the
  /// logarithm of 2.
  template <typename LogOp> Value logarithm(Value a, double ofTwo) {
    if (!dtype.isF32())
      return unary<LogOp>(a);
    Value zero = constant(0), isSmall = isDenormalOrLess(a);
    Value scaled = select(isSmall, mul(a, constant(0x1p24)), a);
    return sub(unary<LogOp>(scaled),
               select(isSmall, constant(24 * ofTwo), zero));
  }
  Value isDenormalOrLess(Value a);
  Value castFloatToInteger(Value value, IntegerType to);
  Value castToFloat(Value value, Type from, FloatType to);
};

} // namespace mlir::torch_ltc

#endif // TORCH_LTC_CONVERSION_TORCHTOLINALG_SCALARBUILDER_H
