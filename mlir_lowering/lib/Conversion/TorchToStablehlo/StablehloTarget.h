//===- StablehloTarget.h - StableHLO as a target ----------------*- C++ -*-===//

#ifndef TORCH_LTC_CONVERSION_TORCHTOSTABLEHLO_STABLEHLOTARGET_H
#define TORCH_LTC_CONVERSION_TORCHTOSTABLEHLO_STABLEHLOTARGET_H

#include "../TorchToTensors/TensorTarget.h"

namespace mlir::torch_ltc {

class StablehloTarget : public TensorTarget {
public:
  using TensorTarget::TensorTarget;

  StringRef getName() const override { return "StableHLO"; }
  Type elementTypeOf(Type dtype) const override;
  Type numberTypeOf(Type dtype) const override { return elementTypeOf(dtype); }
  bool hasEmptyTensors() const override { return true; }

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
  /// The parts of `elementwise`. Operands have the result's sizes. `function`,
  /// `arithmetic` and `bitwise` return null for other ops.
  Value function(Operation *op, Value a);
  Value arithmetic(Operation *op, Value a, Value b);
  Value bitwise(Operation *op, Value a, Value b);
  Value compareFloats(Operation *op, arith::CmpFPredicate predicate,
                      ArrayRef<Value> operands);
  Value compareIntegers(Operation *op, ArrayRef<Value> operands);
  Value convert(Operation *op, Value operand);
  template <typename OpTy> Value unary(Value a);
  template <typename OpTy> Value binary(Value a, Value b);
  Value select(Value condition, Value yes, Value no);
  /// A tensor of the sizes and dtype of `tensor`, whose elements all are
  /// `value`.
  Value splatLike(Value tensor, double value);
};

} // namespace mlir::torch_ltc

#endif // TORCH_LTC_CONVERSION_TORCHTOSTABLEHLO_STABLEHLOTARGET_H
