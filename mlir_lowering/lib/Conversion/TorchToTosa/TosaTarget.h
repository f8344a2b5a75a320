//===- TosaTarget.h - TOSA as a target of whole-tensor ops ------*- C++ -*-===//

#ifndef TORCH_LTC_CONVERSION_TORCHTOTOSA_TOSATARGET_H
#define TORCH_LTC_CONVERSION_TORCHTOTOSA_TOSATARGET_H

#include "../TorchToTensors/TensorTarget.h"

namespace mlir::torch_ltc {

/// TOSA 1.0 with 64-bit integers. TOSA has no float64: a dynamic scalar that is
/// a Python float becomes a float32.
class TosaTarget : public TensorTarget {
public:
  using TensorTarget::TensorTarget;

  StringRef getName() const override { return "TOSA"; }
  Type elementTypeOf(Type dtype) const override;
  Type numberTypeOf(Type dtype) const override;
  bool hasEmptyTensors() const override { return false; }

  Value constant(DenseElementsAttr value) override;
  Value iota(int64_t size, Type elementType) override;
  Value reshape(Value tensor, ArrayRef<int64_t> sizes) override;
  Value transpose(Value tensor, ArrayRef<int64_t> permutation) override;
  Value broadcast(Value tensor, ArrayRef<int64_t> sizes) override;
  Value slice(Value tensor, ArrayRef<int64_t> offsets, ArrayRef<int64_t> sizes,
              ArrayRef<int64_t> strides) override;
  Value pad(Value tensor, ArrayRef<int64_t> low, ArrayRef<int64_t> high,
            ArrayRef<int64_t> interior, TypedAttr scalar) override;
  Value concatenate(ValueRange parts, int64_t dim) override;
  Value reverse(Value tensor, ArrayRef<int64_t> dims) override;
  Value reduce(ReductionKind kind, Value tensor,
               ArrayRef<int64_t> dims) override;
  Value matmul(Value left, Value right) override;
  Value gather(Value values, Value indices) override;
  Value convolve(Value input, Value weight,
                 const ConvolutionWindow &window) override;
  Value elementwise(Operation *op, ValueRange operands) override;
  LogicalResult expandScalarCode(Operation *body) override;

private:
  /// A tosa.const_shape.
  Value shape(ArrayRef<int64_t> sizes);
  /// A constant 0 of one element, for zero points and similar operands.
  Value zeroPoint(Type elementType);
  /// `count` elements along `dim`, `stride` apart, starting with the first.
  Value stridedSlice(Value tensor, int64_t dim, int64_t count, int64_t stride);
  Value spreadDim(Value tensor, int64_t dim, int64_t interior,
                  TypedAttr scalar);
  Value reduceDim(ReductionKind kind, Value tensor, int64_t dim);
  Value applyToInput(Value input, Value weight, ConvolutionWindow &window);
  Value convolveGroup(Value input, Value weight,
                      const ConvolutionWindow &window);

  /// The parts of `elementwise`. `function`, `arithmetic` and `bitwise` return
  /// null for other ops.
  Value function(Operation *op, Value a);
  Value arithmetic(Operation *op, Value a, Value b);
  Value bitwise(Operation *op, Value a, Value b);
  Value compareFloats(Operation *op, arith::CmpFPredicate predicate,
                      ValueRange operands);
  Value compareIntegers(Operation *op, ValueRange operands);
  Value cast(Operation *op, Value operand);
  /// A constant `value` of the rank and dtype of `tensor`, with sizes of 1.
  Value splatLike(Value tensor, double value);
  /// The quotient of integers. Those of fewer than 32 bits are divided as
  /// 32-bit integers, because TOSA only divides integers of 32 and 64 bits.
  Value divide(Value a, Value b);
  template <typename OpTy> Value binary(Value a, Value b);
  template <typename OpTy> Value unary(Value a);
  template <typename OpTy> Value compare(Value a, Value b);
  template <typename OpTy> Value extreme(Value a, Value b, bool ignoresNaN);
  Value mul(Value a, Value b);
  Value truncate(Value a);
  Value expm1(Value a);
  Value log1p(Value a);
  Value logicalNot(Value a);
  Value select(Value condition, Value yes, Value no);
};

} // namespace mlir::torch_ltc

#endif // TORCH_LTC_CONVERSION_TORCHTOTOSA_TOSATARGET_H
