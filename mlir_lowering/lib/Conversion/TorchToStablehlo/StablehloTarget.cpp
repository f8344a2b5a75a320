//===- StablehloTarget.cpp - StableHLO as a target ------------------------===//
//
// Implements shapes, reductions and products. StablehloElementwise.cpp
// implements the arithmetic.
//
//===----------------------------------------------------------------------===//

#include "StablehloTarget.h"

#include "torch_ltc/Dialect/Stablehlo/StablehloDialect.h"

using namespace mlir;
using namespace mlir::torch_ltc;

Type StablehloTarget::elementTypeOf(Type dtype) const {
  auto integer = dyn_cast<IntegerType>(dtype);
  if (!integer)
    return dtype;
  // Reject unsigned dtypes: scalar code has signless integers, which StableHLO
  // interprets as signed.
  if (integer.isUnsigned())
    return {};
  return IntegerType::get(dtype.getContext(), integer.getWidth());
}

Value StablehloTarget::constant(DenseElementsAttr value) {
  // Write bools as bytes: MLIR 22 and other versions read long bool literals in
  // different forms (packed or not), but bytes in the same form.
  if (value.getElementType().isInteger(1) && !value.isSplat()) {
    SmallVector<int8_t> bytes =
        llvm::to_vector_of<int8_t>(value.getValues<bool>());
    auto type = mlir::cast<RankedTensorType>(value.getType());
    Value constant = stablehlo::ConstantOp::create(
        builder, loc, type.clone(builder.getI8Type()),
        DenseElementsAttr::get(type.clone(builder.getI8Type()),
                               ArrayRef<int8_t>(bytes)));
    return stablehlo::ConvertOp::create(builder, loc, type, constant);
  }
  return stablehlo::ConstantOp::create(builder, loc, value.getType(), value);
}

Value StablehloTarget::iota(int64_t size, Type elementType) {
  return stablehlo::IotaOp::create(builder, loc,
                                   RankedTensorType::get(size, elementType),
                                   builder.getI64IntegerAttr(0));
}

//===----------------------------------------------------------------------===//
// Shapes
//===----------------------------------------------------------------------===//

Value StablehloTarget::reshape(Value tensor, ArrayRef<int64_t> sizes) {
  if (sizesOf(tensor) == sizes)
    return tensor;
  return stablehlo::ReshapeOp::create(builder, loc, typeOf(tensor).clone(sizes),
                                      tensor);
}

Value StablehloTarget::transpose(Value tensor, ArrayRef<int64_t> permutation) {
  if (llvm::equal(permutation, llvm::seq<int64_t>(0, permutation.size())))
    return tensor;
  SmallVector<int64_t> sizes;
  for (int64_t dim : permutation)
    sizes.push_back(sizesOf(tensor)[dim]);
  return stablehlo::TransposeOp::create(
      builder, loc, typeOf(tensor).clone(sizes), tensor,
      builder.getDenseI64ArrayAttr(permutation));
}

/// Relies on broadcast_in_dim to repeat dimensions of size 1.
Value StablehloTarget::broadcast(Value tensor, ArrayRef<int64_t> sizes) {
  if (sizesOf(tensor) == sizes)
    return tensor;
  auto dims = llvm::to_vector(llvm::seq<int64_t>(
      sizes.size() - typeOf(tensor).getRank(), sizes.size()));
  return stablehlo::BroadcastInDimOp::create(
      builder, loc, typeOf(tensor).clone(sizes), tensor,
      builder.getDenseI64ArrayAttr(dims));
}

Value StablehloTarget::slice(Value tensor, ArrayRef<int64_t> offsets,
                             ArrayRef<int64_t> sizes,
                             ArrayRef<int64_t> strides) {
  if (sizesOf(tensor) == sizes)
    return tensor;
  SmallVector<int64_t> limits;
  for (auto [offset, size, stride] : llvm::zip(offsets, sizes, strides))
    limits.push_back(size == 0 ? offset : offset + (size - 1) * stride + 1);
  return stablehlo::SliceOp::create(builder, loc, typeOf(tensor).clone(sizes),
                                    tensor,
                                    builder.getDenseI64ArrayAttr(offsets),
                                    builder.getDenseI64ArrayAttr(limits),
                                    builder.getDenseI64ArrayAttr(strides));
}

Value StablehloTarget::pad(Value tensor, ArrayRef<int64_t> low,
                           ArrayRef<int64_t> high, ArrayRef<int64_t> interior,
                           TypedAttr scalar) {
  SmallVector<int64_t> sizes;
  for (auto [size, front, back, between] :
       llvm::zip(sizesOf(tensor), low, high, interior))
    sizes.push_back(front + size + std::max<int64_t>(size - 1, 0) * between +
                    back);
  if (sizesOf(tensor) == ArrayRef(sizes) &&
      llvm::all_of(low, [](int64_t count) { return count == 0; }))
    return tensor;
  return stablehlo::PadOp::create(
      builder, loc, typeOf(tensor).clone(sizes), tensor, splat({}, scalar),
      builder.getDenseI64ArrayAttr(low), builder.getDenseI64ArrayAttr(high),
      builder.getDenseI64ArrayAttr(interior));
}

Value StablehloTarget::concatenate(ValueRange parts, int64_t dim) {
  SmallVector<int64_t> sizes(sizesOf(parts[0]));
  for (Value part : parts.drop_front())
    sizes[dim] += sizesOf(part)[dim];
  return stablehlo::ConcatenateOp::create(builder, loc,
                                          typeOf(parts[0]).clone(sizes), parts,
                                          builder.getI64IntegerAttr(dim));
}

Value StablehloTarget::reverse(Value tensor, ArrayRef<int64_t> dims) {
  if (dims.empty())
    return tensor;
  return stablehlo::ReverseOp::create(builder, loc, tensor.getType(), tensor,
                                      builder.getDenseI64ArrayAttr(dims));
}

//===----------------------------------------------------------------------===//
// Reductions
//===----------------------------------------------------------------------===//

/// The initial value of a reduction.
static TypedAttr neutralElement(Builder &builder, ReductionKind kind,
                                Type element) {
  if (auto floatType = dyn_cast<FloatType>(element)) {
    const llvm::fltSemantics &semantics = floatType.getFloatSemantics();
    if (kind == ReductionKind::Maximum || kind == ReductionKind::Minimum)
      return builder.getFloatAttr(
          floatType,
          APFloat::getInf(semantics, kind == ReductionKind::Maximum));
    return builder.getFloatAttr(floatType,
                                kind == ReductionKind::Product ? 1.0 : 0.0);
  }
  unsigned width = element.getIntOrFloatBitWidth();
  bool isBool = width == 1;
  switch (kind) {
  case ReductionKind::Sum:
  case ReductionKind::Or:
    return builder.getIntegerAttr(element, APInt::getZero(width));
  case ReductionKind::Product:
  case ReductionKind::And:
    return builder.getIntegerAttr(element, APInt(width, 1));
  case ReductionKind::Maximum:
    return builder.getIntegerAttr(element,
                                  isBool ? APInt::getZero(width)
                                         : APInt::getSignedMinValue(width));
  case ReductionKind::Minimum:
    return builder.getIntegerAttr(
        element, isBool ? APInt(1, 1) : APInt::getSignedMaxValue(width));
  }
  llvm_unreachable("all kinds are handled");
}

static Value fold(OpBuilder &builder, Location loc, ReductionKind kind, Value a,
                  Value b) {
  Type type = a.getType();
  switch (kind) {
  case ReductionKind::Sum:
    return stablehlo::AddOp::create(builder, loc, type, a, b);
  case ReductionKind::Product:
    return stablehlo::MulOp::create(builder, loc, type, a, b);
  case ReductionKind::Maximum:
    return stablehlo::MaxOp::create(builder, loc, type, a, b);
  case ReductionKind::Minimum:
    return stablehlo::MinOp::create(builder, loc, type, a, b);
  case ReductionKind::And:
    return stablehlo::AndOp::create(builder, loc, type, a, b);
  case ReductionKind::Or:
    return stablehlo::OrOp::create(builder, loc, type, a, b);
  }
  llvm_unreachable("all kinds are handled");
}

Value StablehloTarget::reduce(ReductionKind kind, Value tensor,
                              ArrayRef<int64_t> dims) {
  if (dims.empty())
    return tensor;
  SmallVector<int64_t> kept;
  for (auto [dim, size] : llvm::enumerate(sizesOf(tensor)))
    if (!llvm::is_contained(dims, dim))
      kept.push_back(size);
  Type element = typeOf(tensor).getElementType();
  Value start = splat({}, neutralElement(builder, kind, element));
  auto op = stablehlo::ReduceOp::create(
      builder, loc, TypeRange(typeOf(tensor).clone(kept)), ValueRange(tensor),
      ValueRange(start), builder.getDenseI64ArrayAttr(dims));
  auto scalar = RankedTensorType::get({}, element);
  OpBuilder::InsertionGuard guard(builder);
  Block *body =
      builder.createBlock(&op.getBody(), {}, {scalar, scalar}, {loc, loc});
  stablehlo::ReturnOp::create(
      builder, loc,
      ValueRange(fold(builder, loc, kind, body->getArgument(0),
                      body->getArgument(1))));
  return op.getResult(0);
}

//===----------------------------------------------------------------------===//
// Products and gathers
//===----------------------------------------------------------------------===//

Value StablehloTarget::matmul(Value left, Value right) {
  ArrayRef<int64_t> sizes = sizesOf(left);
  auto type = typeOf(left).clone({sizes[0], sizes[1], sizesOf(right)[2]});
  return stablehlo::DotGeneralOp::create(
      builder, loc, type, left, right,
      stablehlo::DotDimensionNumbersAttr::get(
          builder.getContext(), /*lhsBatching=*/0, /*rhsBatching=*/0,
          /*lhsContracting=*/2, /*rhsContracting=*/1));
}

/// Gathers rows of one table: `values` [n, k, c], reshaped to [n * k, c].
Value StablehloTarget::gather(Value values, Value indices) {
  SmallVector<int64_t> sizes(sizesOf(values)), indexSizes(sizesOf(indices));
  if (sizes[0] > 1) {
    Type type = indices.getType();
    Type element = typeOf(indices).getElementType();
    Value first = stablehlo::MulOp::create(
        builder, loc, RankedTensorType::get(sizes[0], element),
        iota(sizes[0], element),
        splat(sizes[0], builder.getIntegerAttr(element, sizes[1])));
    Value column = broadcast(reshape(first, {sizes[0], 1}), indexSizes);
    indices = stablehlo::AddOp::create(builder, loc, type, indices, column);
  }
  Value table = reshape(values, {sizes[0] * sizes[1], sizes[2]});
  return stablehlo::GatherOp::create(
      builder, loc,
      typeOf(values).clone({indexSizes[0], indexSizes[1], sizes[2]}), table,
      indices,
      stablehlo::GatherDimensionNumbersAttr::get(
          builder.getContext(), /*offsetDims=*/2, /*collapsedSliceDims=*/0,
          /*startIndexMap=*/0, /*indexVectorDim=*/2),
      builder.getDenseI64ArrayAttr({1, sizes[2]}));
}

Value StablehloTarget::convolve(Value input, Value weight,
                                const ConvolutionWindow &window) {
  int64_t rank = window.spatialRank();
  SmallVector<int64_t> sizes{sizesOf(input)[0], sizesOf(weight)[0]}, padding;
  for (int64_t i = 0; i < rank; ++i) {
    sizes.push_back(
        window.resultSize(i, sizesOf(input)[i + 2], sizesOf(weight)[i + 2]));
    padding.append({window.padLow[i], window.padHigh[i]});
  }
  auto paddingType = RankedTensorType::get({rank, 2}, builder.getI64Type());
  return stablehlo::ConvolutionOp::create(
      builder, loc, typeOf(input).clone(sizes), input, weight,
      builder.getDenseI64ArrayAttr(window.stride),
      DenseIntElementsAttr::get(paddingType, padding),
      builder.getDenseI64ArrayAttr(window.inputDilation),
      builder.getDenseI64ArrayAttr(window.weightDilation),
      stablehlo::ConvDimensionNumbersAttr::get(builder.getContext(), rank),
      builder.getI64IntegerAttr(window.groups), builder.getI64IntegerAttr(1));
}
