//===- FormulaBuilder.h - Formulas in the torch dialect ---*- C++ -*-===//
//
// Emits formulas such as `(x - max).exp()` as torch ops: creates constants,
// infers each result's sizes and dtype, and turns arithmetic with numbers into
// `.Scalar` ops.
//
//   Value x = b.compute(op.getSelf());              // float32 for bfloat16
//   Value e = b.exp(b.sub(x, b.amax(x, {1}, /*keepDim=*/true)));
//   return b.replaceWith({b.mul(e, 0.5)});          // and back
//
//===----------------------------------------------------------------------===//

#ifndef TORCH_LTC_TRANSFORMS_FORMULABUILDER_H
#define TORCH_LTC_TRANSFORMS_FORMULABUILDER_H

#include "torch_ltc/Dialect/Torch/AtenOp.h"
#include "torch_ltc/Dialect/Torch/TorchOps.h"
#include "torch_ltc/Transforms/Decompositions.h"

#include <optional>

namespace mlir::torch_ltc {

/// A Python number in a formula: a constant, or a dynamic scalar (an int or
/// float value, or a rank-0 tensor that is computed from one).
class Number {
public:
  Number(double known) : known(known) {}
  Number(int64_t known) : integer(true), known(known) {}
  Number(int known) : Number(int64_t(known)) {}
  static Number parameter(Value value) {
    Number number(0.0);
    number.value = value;
    return number;
  }

  bool isKnown() const { return !value; }
  bool isInteger() const { return integer; }
  /// The value of a constant.
  double get() const { return known; }
  bool is(double other) const { return isKnown() && known == other; }
  /// The dynamic scalar; null for a constant.
  Value getValue() const { return value; }

private:
  bool integer = false;
  double known;
  Value value;
};

class FormulaBuilder {
public:
  FormulaBuilder(PatternRewriter &rewriter, Operation *op)
      : rewriter(rewriter), op(op) {}

  //===--------------------------------------------------------------------===//
  // The op
  //===--------------------------------------------------------------------===//

  /// Fails, with a reason, unless tensors have static sizes and each operand
  /// that isn't a tensor or a float is a constant. Ints at the positions
  /// `dynamicScalars` may be dynamic scalars.
  LogicalResult checkOperands(ArrayRef<unsigned> dynamicScalars);
  /// Whether `checkOperands({})` would succeed; reports nothing.
  bool areOperandsKnown() const;
  /// Reports why the op can't be decomposed. `reason` is a clause: "its order
  /// is unknown".
  LogicalResult fail(const Twine &reason);

  bool isUsed(unsigned result) const {
    return !op->getResult(result).use_empty();
  }
  ArrayRef<int64_t> resultSizes(unsigned result = 0) const;
  Type resultDtype(unsigned result = 0) const;

  /// Replaces the op's results by `values`, cast to the results' dtypes and
  /// reshaped to their sizes. A value is null if the result isn't computed;
  /// fails if such a result is used.
  LogicalResult replaceWith(ArrayRef<Value> values);
  /// Replaces the operand `operand` of the op, and keeps the op.
  LogicalResult replaceOperand(Value operand, Value value);
  /// Replaces the op by empty tensors if no result has elements; fails
  /// otherwise.
  LogicalResult replaceIfEmpty();

  //===--------------------------------------------------------------------===//
  // Operands: constants of the op
  //===--------------------------------------------------------------------===//

  static bool isNone(Value value);
  static int64_t integer(Value value);
  static bool boolean(Value value);
  static StringRef string(Value value);
  static Number number(Value value);
  static SmallVector<int64_t> integers(Value list);
  static SmallVector<bool> booleans(Value list);
  /// A dimension, counted from the front; 0 for a tensor of rank 0.
  static int64_t dimension(Value value, int64_t rank);
  /// The dimensions of a list, counted from the front and sorted; none and the
  /// empty list stand for all dimensions.
  static SmallVector<int64_t> dimensions(Value list, int64_t rank);

  static ArrayRef<int64_t> sizes(Value tensor);
  static Type dtype(Value tensor);
  static int64_t rank(Value tensor) { return sizes(tensor).size(); }
  static int64_t numElements(Value tensor);
  /// The product of the sizes of the dimensions `dims`.
  static int64_t count(Value tensor, ArrayRef<int64_t> dims);

  //===--------------------------------------------------------------------===//
  // Constants and casts
  //===--------------------------------------------------------------------===//

  Value none();
  Value constant(bool value);
  Value constant(int64_t value);
  Value constant(double value);
  Value list(ArrayRef<int64_t> values);

  Value cast(Value tensor, Type dtype);
  /// The tensor in the dtype in which torch's CPU kernels compute: float32 for
  /// 16-bit floats. None and null are unchanged.
  Value compute(Value tensor);
  /// The tensor in the compute dtype of a result of dtype `dtype`; integers
  /// become floats if `dtype` is a float.
  Value compute(Value tensor, Type dtype) {
    return cast(tensor, computeDtype(dtype));
  }
  static Type computeDtype(Type dtype);

  Value full(ArrayRef<int64_t> sizes, Number value, Type dtype);
  Value zeros(ArrayRef<int64_t> sizes, Type dtype) {
    return full(sizes, 0.0, dtype);
  }
  /// The number as a tensor of rank 0, of int64 or float64.
  Value asTensor(Number number);
  /// The tensor [0, 1, ..., end - 1] of int64.
  Value arange(int64_t end);

  //===--------------------------------------------------------------------===//
  // Elementwise; operands are broadcast, the result has the first tensor's
  // dtype (comparisons and logical ops: bool)
  //===--------------------------------------------------------------------===//

  Value neg(Value x);
  Value abs(Value x);
  Value exp(Value x);
  Value log(Value x);
  Value log1p(Value x);
  Value sqrt(Value x);
  Value rsqrt(Value x);
  Value sigmoid(Value x);
  Value tanh(Value x);
  Value square(Value x) { return mul(x, x); }

  Value add(Value a, Value b);
  Value add(Value a, Number b);
  Value sub(Value a, Value b);
  Value sub(Value a, Number b);
  Value sub(Number a, Value b);
  Value mul(Value a, Value b);
  Value mul(Value a, Number b);
  Value div(Value a, Value b);
  Value div(Value a, Number b);
  Value pow(Value a, Number exponent);
  Value clampMin(Value a, double min);
  Value clampMax(Value a, double max);

  /// a + weight * (b - a)
  Value lerp(Value a, Value b, Number weight);
  /// a + value * b * c; a + value * b / c. All tensors have `a`'s sizes.
  Value addcmul(Value a, Value b, Value c, Number value);
  Value addcdiv(Value a, Value b, Value c, Number value);

  Number sub(Number a, Number b);
  Number mul(Number a, Number b);

  Value eq(Value a, Value b);
  Value eq(Value a, Number b);
  Value ne(Value a, Number b);
  Value lt(Value a, Value b);
  Value le(Value a, Value b);
  Value lt(Value a, Number b);
  Value le(Value a, Number b);
  Value gt(Value a, Number b);
  Value ge(Value a, Number b);
  Value logicalAnd(Value a, Value b);
  Value logicalOr(Value a, Value b);
  Value logicalNot(Value a);
  /// The result has `yes`'s dtype.
  Value where(Value condition, Value yes, Value no);
  /// `x` at positions whose column minus row is at least `diagonal`, and 0
  /// elsewhere.
  Value triu(Value x, int64_t diagonal);
  /// `value` where the mask is true, otherwise `x`.
  Value maskedFill(Value x, Value mask, Number value);

  //===--------------------------------------------------------------------===//
  // Reductions (dimensions are sorted); the result has the operand's dtype
  //===--------------------------------------------------------------------===//

  Value sum(Value x, ArrayRef<int64_t> dims, bool keepDim);
  Value amax(Value x, ArrayRef<int64_t> dims, bool keepDim);
  Value amin(Value x, ArrayRef<int64_t> dims, bool keepDim);
  Value mean(Value x, ArrayRef<int64_t> dims, bool keepDim);
  Value all(Value x, int64_t dim, bool keepDim);

  /// A tensor [1] of int64 that is 0. A program that uses the tensor fails with
  /// an error unless all bools of `condition` are true; eager then reruns the
  /// ops and raises its own error.
  Value zeroIfAll(Value condition);

  //===--------------------------------------------------------------------===//
  // Views, gathers, matrix products
  //===--------------------------------------------------------------------===//

  Value view(Value x, ArrayRef<int64_t> sizes);
  /// Complex numbers as pairs of floats along an additional last dim, and back.
  Value viewAsReal(Value x);
  Value viewAsComplex(Value pairs);
  Value unsqueeze(Value x, int64_t dim);
  Value expand(Value x, ArrayRef<int64_t> sizes);
  Value permute(Value x, ArrayRef<int64_t> dims);
  Value select(Value x, int64_t dim, int64_t index);
  Value slice(Value x, int64_t dim, int64_t start, int64_t end);
  /// `x` with the slice [start, end) of a dim replaced by `part`.
  Value sliceScatter(Value x, Value part, int64_t dim, int64_t start,
                     int64_t end);
  /// `grad` as that slice of zeros of the sizes `sizes`.
  Value sliceBackward(Value grad, ArrayRef<int64_t> sizes, int64_t dim,
                      int64_t start, int64_t end);
  Value concatenate(ArrayRef<Value> tensors, int64_t dim,
                    ArrayRef<int64_t> sizes);
  Value listOf(ArrayRef<Value> tensors);
  Value gather(Value x, int64_t dim, Value index);
  Value indexSelect(Value x, int64_t dim, Value index);
  Value mm(Value a, Value b);
  Value bmm(Value a, Value b);

  //===--------------------------------------------------------------------===//
  // Convolutions; stride, padding, dilation and groups are operands of the op
  //===--------------------------------------------------------------------===//

  /// A convolution that isn't transposed and has no bias.
  Value convolution(Value x, Value weight, Value stride, Value padding,
                    Value dilation, Value groups, ArrayRef<int64_t> sizes);
  /// The gradient of the weight of such a convolution.
  Value convolutionWeightGradient(Value gradOutput, Value x, Value weight,
                                  Value stride, Value padding, Value dilation,
                                  Value groups);

private:
  template <typename OpTy>
  Value create(ArrayRef<int64_t> sizes, Type dtype, ValueRange operands);
  template <typename OpTy> Value unary(Value x);
  template <typename OpTy>
  Value binary(Value a, Value b, Type dtype, ValueRange more = {});
  template <typename TensorOp, typename ScalarOp>
  Value withNumber(Value a, Number b, Type dtype, ValueRange more = {});
  template <typename OpTy>
  Value reduce(Value x, ArrayRef<int64_t> dims, bool keepDim,
               bool takesDtype = false);
  Value asScalar(Number number);
  /// The constant int that represents `dtype` in ATen ops (c10::ScalarType).
  Value scalarType(Type dtype);
  Type boolDtype();

  PatternRewriter &rewriter;
  Operation *op;
};

/// Rewrites ops of class `OpTy` with a function.
template <typename OpTy>
class DecompositionPattern : public OpRewritePattern<OpTy> {
public:
  using Function = LogicalResult (*)(OpTy, FormulaBuilder &);

  DecompositionPattern(MLIRContext *context, Function function,
                       torch::DynamicScalars scalars)
      : OpRewritePattern<OpTy>(context), function(function), scalars(scalars) {}

  LogicalResult matchAndRewrite(OpTy op,
                                PatternRewriter &rewriter) const override {
    // Formulas are written for real numbers, except those that only move
    // elements to the parts of a list.
    if (torch::hasComplexTensor(op) &&
        !isa<torch::ListType>(op->getResult(0).getType()))
      return failure();
    FormulaBuilder builder(rewriter, op);
    if (failed(builder.checkOperands(torch::dynamicScalarsOf<OpTy>(scalars))))
      return failure();
    if (succeeded(builder.replaceIfEmpty()))
      return success();
    return function(op, builder);
  }

private:
  Function function;
  torch::DynamicScalars scalars;
};

/// Adds the patterns of ops that aren't legal.
class DecompositionAdder {
public:
  DecompositionAdder(RewritePatternSet &patterns,
                     const DecompositionOptions &options)
      : patterns(patterns), options(options) {}

  template <typename OpTy>
  void add(LogicalResult (*function)(OpTy, FormulaBuilder &),
           torch::DynamicScalars scalars = torch::DynamicScalars::AsInOpTable) {
    if (!options.isLegal(OpTy::getOperationName()))
      patterns.add<DecompositionPattern<OpTy>>(patterns.getContext(), function,
                                               scalars);
  }

private:
  RewritePatternSet &patterns;
  const DecompositionOptions &options;
};

} // namespace mlir::torch_ltc

#endif // TORCH_LTC_TRANSFORMS_FORMULABUILDER_H
