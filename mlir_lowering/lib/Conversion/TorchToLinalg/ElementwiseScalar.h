//===- ElementwiseScalar.h - Bodies of elementwise ops ----------*- C++ -*-===//
//
// The column `lower` of the op table names a scalar builder: "add_foo" is the
// function emitAddFoo, which emits one element of the result. The argument
// `args` names the op's arguments as its schema does: `s.arg(args.self)`.
//
//===----------------------------------------------------------------------===//

#ifndef TORCH_LTC_CONVERSION_TORCHTOLINALG_ELEMENTWISESCALAR_H
#define TORCH_LTC_CONVERSION_TORCHTOLINALG_ELEMENTWISESCALAR_H

#include "OpLowering.h"

namespace mlir::torch_ltc {

/// An argument of an elementwise op. It isn't a Value, because scalar code uses
/// what `ElementwiseBody` makes of it.
struct Argument {
  Value operand;
};

/// Emits the computation of one element. The inherited `dtype` is the compute
/// dtype: float32 for the 16-bit floats, so that each op rounds once.
class ElementwiseBody : public ScalarBuilder {
public:
  /// `common` is torch's common dtype of the op. If `exactScalars`, numbers
  /// aren't rounded to `common` first (torch's arithmetic kernels read them as
  /// `opmath_t`). `elements` has one value for each tensor argument, at the
  /// argument's position.
  ElementwiseBody(OpBuilder &builder, OpLowering &op, Type common,
                  bool exactScalars, ArrayRef<Value> elements)
      : ScalarBuilder(builder, op.loc, computeDtypeOf(common)), op(op),
        common(common), exactScalars(exactScalars), elements(elements) {}

  OpLowering &op;

  bool has(Argument argument) const { return !op.isNone(argument.operand); }
  bool isTensor(Argument argument) const {
    return op.isTensor(argument.operand);
  }
  /// The argument in the compute dtype.
  Value arg(Argument argument);
  /// Like `arg`, but with `exactScalars`, tensors of rank 0 aren't rounded to
  /// the common dtype either.
  Value exactArg(Argument argument);
  /// Whether the argument isn't zero, whatever its dtype.
  Value argAsBool(Argument argument);
  /// Rounds `value` to the common dtype, as kernels that compute in a 16-bit
  /// dtype do after each step (torch 2.13: logit, cubes, floor_divide of
  /// tensors).
  Value rounded(Value value) { return roundedTo(common, value); }
  bool isBFloat16() const { return common.isBF16(); }
  /// Like `floorDiv`, but rounds each step to the common dtype.
  Value floorDivInSteps(Value a, Value b) { return floorDiv(a, b, common); }
  /// The value of the argument, if it is a constant number.
  std::optional<double> known(Argument argument) const;
  /// Whether the argument is the constant `value`, so that a computation can be
  /// omitted.
  bool isConstant(Argument argument, double value) const {
    return known(argument) == value;
  }

private:
  /// The argument, not converted, and its dtype.
  std::pair<Value, Type> raw(Argument argument);

  Type common;
  bool exactScalars;
  ArrayRef<Value> elements;
};

/// torch.result_type of the operands: tensors with dimensions take precedence
/// over rank-0 tensors, and these over Python numbers; a later group only
/// matters if its category is higher (bool < integer < float).
Type resultTypeOfOperands(OpLowering &op);

#include "torch_ltc/Dialect/Torch/ScalarBuilders.inc"

/// The operand, if the op returns it unchanged; otherwise null.
template <typename Arguments>
Value unchangedOperand(OpLowering &op, Arguments args) {
  if constexpr (std::is_same_v<Arguments, IdentityArguments>)
    return args.self.operand;
  if constexpr (std::is_same_v<Arguments, CastArguments>)
    if (op.dtype(args.self.operand) == op.resultDtype())
      return args.self.operand;
  return {};
}

/// A scalar builder that gets its arguments from the op.
using ScalarEmitter = Value (*)(ElementwiseBody &);

template <typename Arguments, Value (*emit)(ElementwiseBody &, Arguments)>
Value emitScalar(ElementwiseBody &s) {
  return emit(s, Arguments(s.op.getArguments()));
}

} // namespace mlir::torch_ltc

#endif // TORCH_LTC_CONVERSION_TORCHTOLINALG_ELEMENTWISESCALAR_H
