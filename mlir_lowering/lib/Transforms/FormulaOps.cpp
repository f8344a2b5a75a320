//===- FormulaOps.cpp - Ops for formulas ----------------------------------===//

#include "FormulaBuilder.h"

#include "torch_ltc/Dialect/Torch/TorchOps_complex.h"
#include "torch_ltc/Dialect/Torch/TorchOps_convolution.h"
#include "torch_ltc/Dialect/Torch/TorchOps_data_movement.h"
#include "torch_ltc/Dialect/Torch/TorchOps_elementwise.h"
#include "torch_ltc/Dialect/Torch/TorchOps_indexing.h"
#include "torch_ltc/Dialect/Torch/TorchOps_linear.h"
#include "torch_ltc/Dialect/Torch/TorchOps_reduction.h"

using namespace mlir;
using namespace mlir::torch_ltc;
using namespace mlir::torch_ltc::torch;

template <typename OpTy>
Value FormulaBuilder::create(ArrayRef<int64_t> sizes, Type dtype,
                             ValueRange operands) {
  auto type = ValueTensorType::get(op->getContext(), sizes, dtype);
  return OpTy::create(rewriter, op->getLoc(), TypeRange(type), operands)
      ->getResult(0);
}

Type FormulaBuilder::boolDtype() {
  return mlir::IntegerType::get(op->getContext(), 1);
}

//===----------------------------------------------------------------------===//
// Elementwise
//===----------------------------------------------------------------------===//

// The broadcast sizes of `a` and `b`, which must be compatible.
static SmallVector<int64_t> broadcastSizes(ArrayRef<int64_t> a,
                                           ArrayRef<int64_t> b) {
  if (a.size() < b.size())
    std::swap(a, b);
  SmallVector<int64_t> sizes(a);
  for (size_t i = 0; i < b.size(); ++i) {
    int64_t &size = sizes[a.size() - b.size() + i];
    size = size == 1 ? b[i] : size;
  }
  return sizes;
}

template <typename OpTy> Value FormulaBuilder::unary(Value x) {
  return create<OpTy>(sizes(x), dtype(x), x);
}

template <typename OpTy>
Value FormulaBuilder::binary(Value a, Value b, Type dtype, ValueRange more) {
  SmallVector<Value> operands{a, b};
  llvm::append_range(operands, more);
  return create<OpTy>(broadcastSizes(sizes(a), sizes(b)), dtype, operands);
}

template <typename TensorOp, typename ScalarOp>
Value FormulaBuilder::withNumber(Value a, Number b, Type dtype,
                                 ValueRange more) {
  Value scalar = asScalar(b);
  if (isTensorType(scalar.getType()))
    return binary<TensorOp>(a, scalar, dtype, more);
  SmallVector<Value> operands{a, scalar};
  llvm::append_range(operands, more);
  return create<ScalarOp>(sizes(a), dtype, operands);
}

Value FormulaBuilder::neg(Value x) { return unary<AtenNegOp>(x); }
Value FormulaBuilder::abs(Value x) { return unary<AtenAbsOp>(x); }
Value FormulaBuilder::exp(Value x) { return unary<AtenExpOp>(x); }
Value FormulaBuilder::log(Value x) { return unary<AtenLogOp>(x); }
Value FormulaBuilder::log1p(Value x) { return unary<AtenLog1pOp>(x); }
Value FormulaBuilder::sqrt(Value x) { return unary<AtenSqrtOp>(x); }
Value FormulaBuilder::rsqrt(Value x) { return unary<AtenRsqrtOp>(x); }
Value FormulaBuilder::sigmoid(Value x) { return unary<AtenSigmoidOp>(x); }
Value FormulaBuilder::tanh(Value x) { return unary<AtenTanhOp>(x); }

Value FormulaBuilder::add(Value a, Value b) {
  return binary<AtenAddTensorOp>(a, b, dtype(a), constant(int64_t(1)));
}
Value FormulaBuilder::add(Value a, Number b) {
  return withNumber<AtenAddTensorOp, AtenAddScalarOp>(a, b, dtype(a),
                                                      constant(int64_t(1)));
}
Value FormulaBuilder::sub(Value a, Value b) {
  return binary<AtenSubTensorOp>(a, b, dtype(a), constant(int64_t(1)));
}
Value FormulaBuilder::sub(Value a, Number b) {
  return withNumber<AtenSubTensorOp, AtenSubScalarOp>(a, b, dtype(a),
                                                      constant(int64_t(1)));
}
Value FormulaBuilder::sub(Number a, Value b) {
  return withNumber<AtenRsubTensorOp, AtenRsubScalarOp>(b, a, dtype(b),
                                                        constant(int64_t(1)));
}
Value FormulaBuilder::mul(Value a, Value b) {
  return binary<AtenMulTensorOp>(a, b, dtype(a));
}
Value FormulaBuilder::mul(Value a, Number b) {
  return withNumber<AtenMulTensorOp, AtenMulScalarOp>(a, b, dtype(a));
}
Value FormulaBuilder::div(Value a, Value b) {
  return binary<AtenDivTensorOp>(a, b, dtype(a));
}
Value FormulaBuilder::div(Value a, Number b) {
  return withNumber<AtenDivTensorOp, AtenDivScalarOp>(a, b, dtype(a));
}
Value FormulaBuilder::pow(Value a, Number exponent) {
  return withNumber<AtenPowTensorTensorOp, AtenPowTensorScalarOp>(a, exponent,
                                                                  dtype(a));
}
Value FormulaBuilder::clampMin(Value a, double min) {
  return create<AtenClampMinOp>(sizes(a), dtype(a), {a, constant(min)});
}
Value FormulaBuilder::clampMax(Value a, double max) {
  return create<AtenClampMaxOp>(sizes(a), dtype(a), {a, constant(max)});
}

Value FormulaBuilder::lerp(Value a, Value b, Number weight) {
  return create<AtenLerpScalarOp>(sizes(a), dtype(a), {a, b, asScalar(weight)});
}
Value FormulaBuilder::addcmul(Value a, Value b, Value c, Number value) {
  return create<AtenAddcmulOp>(sizes(a), dtype(a), {a, b, c, asScalar(value)});
}
Value FormulaBuilder::addcdiv(Value a, Value b, Value c, Number value) {
  return create<AtenAddcdivOp>(sizes(a), dtype(a), {a, b, c, asScalar(value)});
}

Value FormulaBuilder::eq(Value a, Value b) {
  return binary<AtenEqTensorOp>(a, b, boolDtype());
}
Value FormulaBuilder::eq(Value a, Number b) {
  return withNumber<AtenEqTensorOp, AtenEqScalarOp>(a, b, boolDtype());
}
Value FormulaBuilder::ne(Value a, Number b) {
  return withNumber<AtenNeTensorOp, AtenNeScalarOp>(a, b, boolDtype());
}
Value FormulaBuilder::lt(Value a, Value b) {
  return binary<AtenLtTensorOp>(a, b, boolDtype());
}
Value FormulaBuilder::le(Value a, Value b) {
  return binary<AtenLeTensorOp>(a, b, boolDtype());
}
Value FormulaBuilder::lt(Value a, Number b) {
  return withNumber<AtenLtTensorOp, AtenLtScalarOp>(a, b, boolDtype());
}
Value FormulaBuilder::le(Value a, Number b) {
  return withNumber<AtenLeTensorOp, AtenLeScalarOp>(a, b, boolDtype());
}
Value FormulaBuilder::gt(Value a, Number b) {
  return withNumber<AtenGtTensorOp, AtenGtScalarOp>(a, b, boolDtype());
}
Value FormulaBuilder::ge(Value a, Number b) {
  return withNumber<AtenGeTensorOp, AtenGeScalarOp>(a, b, boolDtype());
}
Value FormulaBuilder::logicalAnd(Value a, Value b) {
  return binary<AtenLogicalAndOp>(a, b, boolDtype());
}
Value FormulaBuilder::logicalOr(Value a, Value b) {
  return binary<AtenLogicalOrOp>(a, b, boolDtype());
}
Value FormulaBuilder::logicalNot(Value a) {
  return create<AtenLogicalNotOp>(sizes(a), boolDtype(), a);
}
Value FormulaBuilder::where(Value condition, Value yes, Value no) {
  SmallVector<int64_t> result =
      broadcastSizes(sizes(condition), broadcastSizes(sizes(yes), sizes(no)));
  return create<AtenWhereSelfOp>(result, dtype(yes), {condition, yes, no});
}
Value FormulaBuilder::triu(Value x, int64_t diagonal) {
  return create<AtenTriuOp>(sizes(x), dtype(x), {x, constant(diagonal)});
}
Value FormulaBuilder::maskedFill(Value x, Value mask, Number value) {
  return create<AtenMaskedFillScalarOp>(broadcastSizes(sizes(x), sizes(mask)),
                                        dtype(x), {x, mask, asScalar(value)});
}

//===----------------------------------------------------------------------===//
// Reductions
//===----------------------------------------------------------------------===//

static SmallVector<int64_t> reducedSizes(ArrayRef<int64_t> sizes,
                                         ArrayRef<int64_t> dims, bool keepDim) {
  SmallVector<int64_t> result;
  for (auto [dim, size] : llvm::enumerate(sizes)) {
    bool reduced = llvm::is_contained(dims, int64_t(dim));
    if (!reduced || keepDim)
      result.push_back(reduced ? 1 : size);
  }
  return result;
}

// Returns `x` if `dims` is empty: with an empty list, the op would reduce all
// dimensions, which is only correct for a tensor of rank 0.
template <typename OpTy>
Value FormulaBuilder::reduce(Value x, ArrayRef<int64_t> dims, bool keepDim,
                             bool takesDtype) {
  if (dims.empty() && rank(x) > 0)
    return x;
  SmallVector<Value> operands{x, list(dims), constant(keepDim)};
  if (takesDtype)
    operands.push_back(isa<mlir::FloatType>(dtype(x)) ? none()
                                                      : scalarType(dtype(x)));
  return create<OpTy>(reducedSizes(sizes(x), dims, keepDim), dtype(x),
                      operands);
}

Value FormulaBuilder::sum(Value x, ArrayRef<int64_t> dims, bool keepDim) {
  return reduce<AtenSumDimIntListOp>(x, dims, keepDim, /*takesDtype=*/true);
}
Value FormulaBuilder::amax(Value x, ArrayRef<int64_t> dims, bool keepDim) {
  return reduce<AtenAmaxOp>(x, dims, keepDim);
}
Value FormulaBuilder::amin(Value x, ArrayRef<int64_t> dims, bool keepDim) {
  return reduce<AtenAminOp>(x, dims, keepDim);
}
Value FormulaBuilder::mean(Value x, ArrayRef<int64_t> dims, bool keepDim) {
  return div(sum(x, dims, keepDim), double(count(x, dims)));
}
Value FormulaBuilder::all(Value x, int64_t dim, bool keepDim) {
  return create<AtenAllDimOp>(reducedSizes(sizes(x), {dim}, keepDim),
                              boolDtype(),
                              {x, constant(dim), constant(keepDim)});
}

Value FormulaBuilder::zeroIfAll(Value condition) {
  Value flat = view(condition, {numElements(condition)});
  Value holds = numElements(flat) == 1 ? flat : all(flat, 0, /*keepDim=*/true);
  Type int64 = rewriter.getIntegerType(64, /*isSigned=*/true);
  Value zero = zeros({1}, int64);
  return gather(zero, 0, where(holds, zero, full({1}, 1, int64)));
}

//===----------------------------------------------------------------------===//
// Views, gathers, matrix products
//===----------------------------------------------------------------------===//

Value FormulaBuilder::view(Value x, ArrayRef<int64_t> sizes) {
  if (this->sizes(x) == sizes)
    return x;
  return create<AtenViewOp>(sizes, dtype(x), {x, list(sizes)});
}

Value FormulaBuilder::viewAsReal(Value x) {
  SmallVector<int64_t> result(sizes(x));
  result.push_back(2);
  Type part = mlir::cast<ComplexType>(dtype(x)).getElementType();
  return create<AtenViewAsRealOp>(result, part, {x});
}

Value FormulaBuilder::viewAsComplex(Value pairs) {
  return create<AtenViewAsComplexOp>(sizes(pairs).drop_back(),
                                     ComplexType::get(dtype(pairs)), {pairs});
}

Value FormulaBuilder::unsqueeze(Value x, int64_t dim) {
  SmallVector<int64_t> result(sizes(x));
  result.insert(result.begin() + dim, 1);
  return create<AtenUnsqueezeOp>(result, dtype(x), {x, constant(dim)});
}

Value FormulaBuilder::expand(Value x, ArrayRef<int64_t> sizes) {
  if (this->sizes(x) == sizes)
    return x;
  return create<AtenExpandOp>(sizes, dtype(x),
                              {x, list(sizes), constant(false)});
}

Value FormulaBuilder::permute(Value x, ArrayRef<int64_t> dims) {
  SmallVector<int64_t> result =
      llvm::map_to_vector(dims, [&](int64_t dim) { return sizes(x)[dim]; });
  return create<AtenPermuteOp>(result, dtype(x), {x, list(dims)});
}

Value FormulaBuilder::select(Value x, int64_t dim, int64_t index) {
  return create<AtenSelectIntOp>(reducedSizes(sizes(x), {dim}, false), dtype(x),
                                 {x, constant(dim), constant(index)});
}

Value FormulaBuilder::slice(Value x, int64_t dim, int64_t start, int64_t end) {
  SmallVector<int64_t> result(sizes(x));
  result[dim] = end - start;
  return create<AtenSliceTensorOp>(
      result, dtype(x),
      {x, constant(dim), constant(start), constant(end), constant(int64_t(1))});
}

Value FormulaBuilder::sliceScatter(Value x, Value part, int64_t dim,
                                   int64_t start, int64_t end) {
  return create<AtenSliceScatterOp>(sizes(x), dtype(x),
                                    {x, part, constant(dim), constant(start),
                                     constant(end), constant(int64_t(1))});
}

Value FormulaBuilder::sliceBackward(Value grad, ArrayRef<int64_t> sizes,
                                    int64_t dim, int64_t start, int64_t end) {
  return create<AtenSliceBackwardOp>(sizes, dtype(grad),
                                     {grad, list(sizes), constant(dim),
                                      constant(start), constant(end),
                                      constant(int64_t(1))});
}

Value FormulaBuilder::concatenate(ArrayRef<Value> tensors, int64_t dim,
                                  ArrayRef<int64_t> sizes) {
  return create<AtenCatOp>(sizes, dtype(tensors.front()),
                           {listOf(tensors), constant(dim)});
}

Value FormulaBuilder::gather(Value x, int64_t dim, Value index) {
  return create<AtenGatherOp>(sizes(index), dtype(x),
                              {x, constant(dim), index, constant(false)});
}

Value FormulaBuilder::indexSelect(Value x, int64_t dim, Value index) {
  SmallVector<int64_t> result(sizes(x));
  result[dim] = numElements(index);
  return create<AtenIndexSelectOp>(result, dtype(x), {x, constant(dim), index});
}

Value FormulaBuilder::mm(Value a, Value b) {
  return create<AtenMmOp>({sizes(a)[0], sizes(b)[1]}, dtype(a), {a, b});
}

Value FormulaBuilder::bmm(Value a, Value b) {
  return create<AtenBmmOp>({sizes(a)[0], sizes(a)[1], sizes(b)[2]}, dtype(a),
                           {a, b});
}

Value FormulaBuilder::convolution(Value x, Value weight, Value stride,
                                  Value padding, Value dilation, Value groups,
                                  ArrayRef<int64_t> sizes) {
  Value noOutputPadding = list(SmallVector<int64_t>(rank(x) - 2, 0));
  return create<AtenConvolutionOp>(
      sizes, dtype(x),
      {x, weight, none(), stride, padding, dilation,
       /*transposed=*/constant(false), noOutputPadding, groups});
}

Value FormulaBuilder::convolutionWeightGradient(Value gradOutput, Value x,
                                                Value weight, Value stride,
                                                Value padding, Value dilation,
                                                Value groups) {
  MLIRContext *context = op->getContext();
  Value noOutputPadding = list(SmallVector<int64_t>(rank(x) - 2, 0));
  SmallVector<Value> mask{constant(false), constant(true), constant(false)};
  Value wanted = PrimListConstructOp::create(
      rewriter, op->getLoc(), ListType::get(context, BoolType::get(context)),
      mask);
  Type bias =
      ValueTensorType::get(context, sizes(weight).take_front(), dtype(weight));
  return AtenConvolutionBackwardOp::create(
             rewriter, op->getLoc(), {x.getType(), weight.getType(), bias},
             {gradOutput, x, weight, /*bias_sizes=*/none(), stride, padding,
              dilation, /*transposed=*/constant(false), noOutputPadding, groups,
              wanted})
      ->getResult(1);
}
