//===- ElementwiseScalar.h - Bodies of elementwise ops ----------*- C++ -*-===//
//
// The column `lower` of the op table names a scalar builder: "add_foo" is the
// function emitAddFoo below, which emits one element of the result. Scalar
// builders access operands by their positions in the schema.
//
//===----------------------------------------------------------------------===//

#ifndef TORCH_LTC_CONVERSION_TORCHTOLINALG_ELEMENTWISESCALAR_H
#define TORCH_LTC_CONVERSION_TORCHTOLINALG_ELEMENTWISESCALAR_H

#include "OpLowering.h"

namespace mlir::torch_ltc {

/// Emits the computation of one element. The inherited `dtype` is the compute
/// dtype: float32 for the 16-bit floats, so that each op rounds once.
class ElementwiseBody : public ScalarBuilder {
public:
  /// `common` is torch's common dtype of the op. If `exactScalars`, numbers
  /// aren't rounded to `common` first (torch's arithmetic kernels read them as
  /// `opmath_t`). `elements` has one value for each tensor
  /// operand, at the operand's position.
  ElementwiseBody(OpBuilder &builder, OpLowering &op, Type common,
                  bool exactScalars, ArrayRef<Value> elements)
      : ScalarBuilder(builder, op.loc, computeDtypeOf(common)), op(op),
        common(common), exactScalars(exactScalars), elements(elements) {}

  OpLowering &op;

  bool has(unsigned position) const { return !op.isNone(position); }
  /// The operand in the compute dtype.
  Value arg(unsigned position);
  /// Like `arg`, but with `exactScalars`, tensors of rank 0 aren't rounded to
  /// the common dtype either.
  Value exactArg(unsigned position);
  /// Whether the operand isn't zero, whatever its dtype.
  Value argAsBool(unsigned position);
  /// Rounds `value` to the common dtype, as kernels that compute in a 16-bit
  /// dtype do after each step (torch 2.13: logit, cubes, floor_divide of
  /// tensors).
  Value rounded(Value value) { return roundedTo(common, value); }
  bool isBFloat16() const { return common.isBF16(); }
  /// Like `floorDiv`, but rounds each step to the common dtype.
  Value floorDivInSteps(Value a, Value b) { return floorDiv(a, b, common); }
  /// The value of the operand, if it is a constant number.
  std::optional<double> known(unsigned position) const;
  /// Whether the operand is the constant `value`, so that a computation can be
  /// omitted.
  bool isConstant(unsigned position, double value) const {
    return known(position) == value;
  }

private:
  /// The operand, not converted, and its dtype.
  std::pair<Value, Type> raw(unsigned position);

  Type common;
  bool exactScalars;
  ArrayRef<Value> elements;
};

/// torch.result_type of the operands: tensors with dimensions take precedence
/// over rank-0 tensors, and these over Python numbers; a later group only
/// matters if its category is higher (bool < integer < float).
Type resultTypeOfOperands(OpLowering &op);

#define ELEMENTWISE_OP(op, builder, rule, divides)                             \
  Value emit##builder(ElementwiseBody &);
#include "torch_ltc/Dialect/Torch/ElementwiseOps.inc"
#undef ELEMENTWISE_OP

} // namespace mlir::torch_ltc

#endif // TORCH_LTC_CONVERSION_TORCHTOLINALG_ELEMENTWISESCALAR_H
