//===- TosaTarget.cpp - TOSA as a target of whole-tensor ops --------------===//
//
// Implements shapes, reductions and products. TosaElementwise.cpp implements
// the arithmetic.
//
//===----------------------------------------------------------------------===//

#include "TosaTarget.h"

#include "mlir/Dialect/Tosa/IR/TosaOps.h"

using namespace mlir;
using namespace mlir::torch_ltc;

Type TosaTarget::elementTypeOf(Type dtype) const {
  if (dtype.isF32() || dtype.isF16() || dtype.isBF16() || dtype.isInteger(1))
    return dtype;
  if (auto integer = dyn_cast<IntegerType>(dtype))
    if (!integer.isUnsigned())
      return IntegerType::get(dtype.getContext(), integer.getWidth());
  return {};
}

Type TosaTarget::numberTypeOf(Type dtype) const {
  if (dtype.isF64())
    return Float32Type::get(dtype.getContext());
  return elementTypeOf(dtype);
}

//===----------------------------------------------------------------------===//
// Constants
//===----------------------------------------------------------------------===//

Value TosaTarget::constant(DenseElementsAttr value) {
  auto type = mlir::cast<RankedTensorType>(value.getType());
  // Scalar code on numbers has float64 constants, which become float32.
  if (type.getElementType().isF64()) {
    Type f32 = builder.getF32Type();
    value = mlir::cast<DenseFPElementsAttr>(value).mapValues(
        f32, [](const APFloat &number) {
          APFloat narrow = number;
          bool losesInfo;
          narrow.convert(APFloat::IEEEsingle(), APFloat::rmNearestTiesToEven,
                         &losesInfo);
          return narrow.bitcastToAPInt();
        });
    type = type.clone(f32);
  }
  return tosa::ConstOp::create(builder, loc, type, value);
}

Value TosaTarget::iota(int64_t size, Type elementType) {
  SmallVector<APInt> values;
  for (int64_t i = 0; i < size; ++i)
    values.push_back(APInt(elementType.getIntOrFloatBitWidth(), i));
  return constant(
      DenseElementsAttr::get(RankedTensorType::get(size, elementType), values));
}

Value TosaTarget::shape(ArrayRef<int64_t> sizes) {
  auto rank = static_cast<int64_t>(sizes.size());
  auto type = RankedTensorType::get(rank, builder.getIndexType());
  return tosa::ConstShapeOp::create(
      builder, loc, tosa::shapeType::get(builder.getContext(), rank),
      DenseIntElementsAttr::get(type, sizes));
}

Value TosaTarget::zeroPoint(Type elementType) { return zeros(1, elementType); }

//===----------------------------------------------------------------------===//
// Shapes
//===----------------------------------------------------------------------===//

Value TosaTarget::reshape(Value tensor, ArrayRef<int64_t> sizes) {
  if (sizesOf(tensor) == sizes)
    return tensor;
  return tosa::ReshapeOp::create(builder, loc, typeOf(tensor).clone(sizes),
                                 tensor, shape(sizes));
}

Value TosaTarget::transpose(Value tensor, ArrayRef<int64_t> permutation) {
  if (llvm::equal(permutation, llvm::seq<int64_t>(0, permutation.size())))
    return tensor;
  SmallVector<int64_t> sizes;
  for (int64_t dim : permutation)
    sizes.push_back(sizesOf(tensor)[dim]);
  return tosa::TransposeOp::create(
      builder, loc, typeOf(tensor).clone(sizes), tensor,
      builder.getDenseI32ArrayAttr(llvm::to_vector_of<int32_t>(permutation)));
}

Value TosaTarget::broadcast(Value tensor, ArrayRef<int64_t> sizes) {
  SmallVector<int64_t> from(sizesOf(tensor)), multiples;
  from.insert(from.begin(), sizes.size() - from.size(), 1);
  tensor = reshape(tensor, from);
  for (auto [have, want] : llvm::zip(from, sizes))
    multiples.push_back(have == want ? 1 : want);
  if (llvm::all_of(multiples, [](int64_t count) { return count == 1; }))
    return tensor;
  return tosa::TileOp::create(builder, loc, typeOf(tensor).clone(sizes), tensor,
                              shape(multiples));
}

/// Reshapes the elements along the dimension into rows of `stride` elements,
/// and selects the first column.
Value TosaTarget::stridedSlice(Value tensor, int64_t dim, int64_t count,
                               int64_t stride) {
  SmallVector<int64_t> sizes(sizesOf(tensor)), apart(sizes);
  SmallVector<int64_t> zerosOf(sizes.size(), 0), behind(sizes.size(), 0);
  behind[dim] = count * stride - sizes[dim];
  auto zero = mlir::cast<TypedAttr>(
      builder.getZeroAttr(typeOf(tensor).getElementType()));
  tensor = pad(tensor, zerosOf, behind, zerosOf, zero);
  apart[dim] = count;
  apart.insert(apart.begin() + dim + 1, stride);
  tensor = reshape(tensor, apart);
  apart[dim + 1] = 1;
  SmallVector<int64_t> offsets(apart.size(), 0), ones(apart.size(), 1);
  tensor = slice(tensor, offsets, apart, ones);
  sizes[dim] = count;
  return reshape(tensor, sizes);
}

Value TosaTarget::slice(Value tensor, ArrayRef<int64_t> offsets,
                        ArrayRef<int64_t> sizes, ArrayRef<int64_t> strides) {
  SmallVector<int64_t> reach;
  for (auto [size, stride] : llvm::zip(sizes, strides)) {
    if (size == 0)
      return reject("TOSA has no tensors without elements",
                    typeOf(tensor).clone(sizes));
    reach.push_back((size - 1) * stride + 1);
  }
  if (ArrayRef(reach) != sizesOf(tensor))
    tensor = tosa::SliceOp::create(builder, loc, typeOf(tensor).clone(reach),
                                   tensor, shape(offsets), shape(reach));
  for (auto [dim, size, stride] : llvm::enumerate(sizes, strides))
    if (stride != 1 && size != 1)
      tensor = stridedSlice(tensor, dim, size, stride);
  return tensor;
}

/// Inserts `interior` copies of `scalar` after each element along the
/// dimension, and then removes those after the last element.
Value TosaTarget::spreadDim(Value tensor, int64_t dim, int64_t interior,
                            TypedAttr scalar) {
  SmallVector<int64_t> sizes(sizesOf(tensor)), apart(sizes);
  int64_t size = sizes[dim];
  apart.insert(apart.begin() + dim + 1, 1);
  SmallVector<int64_t> zerosOf(apart.size(), 0), behind(apart.size(), 0);
  behind[dim + 1] = interior;
  tensor = pad(reshape(tensor, apart), zerosOf, behind, zerosOf, scalar);
  sizes[dim] = size * (interior + 1);
  tensor = reshape(tensor, sizes);
  sizes[dim] -= interior;
  return slice(tensor, SmallVector<int64_t>(sizes.size(), 0), sizes,
               SmallVector<int64_t>(sizes.size(), 1));
}

Value TosaTarget::pad(Value tensor, ArrayRef<int64_t> low,
                      ArrayRef<int64_t> high, ArrayRef<int64_t> interior,
                      TypedAttr scalar) {
  for (auto [dim, count] : llvm::enumerate(interior))
    if (count > 0 && sizesOf(tensor)[dim] > 1)
      tensor = spreadDim(tensor, dim, count, scalar);
  // tosa.pad supports negative padding, but its lowering to linalg doesn't.
  SmallVector<int64_t> offsets, kept, padding, padded;
  for (auto [size, front, back] : llvm::zip(sizesOf(tensor), low, high)) {
    offsets.push_back(std::max<int64_t>(-front, 0));
    kept.push_back(size - offsets.back() - std::max<int64_t>(-back, 0));
    padding.append({std::max<int64_t>(front, 0), std::max<int64_t>(back, 0)});
    padded.push_back(size + front + back);
  }
  if (llvm::any_of(kept, [](int64_t size) { return size <= 0; }))
    return splat(padded, scalar);
  tensor = slice(tensor, offsets, kept, SmallVector<int64_t>(kept.size(), 1));
  if (llvm::all_of(padding, [](int64_t count) { return count == 0; }))
    return tensor;
  return tosa::PadOp::create(builder, loc, typeOf(tensor).clone(padded), tensor,
                             shape(padding), splat(1, scalar));
}

Value TosaTarget::concatenate(ValueRange parts, int64_t dim) {
  SmallVector<int64_t> sizes(sizesOf(parts[0]));
  for (Value part : parts.drop_front())
    sizes[dim] += sizesOf(part)[dim];
  return tosa::ConcatOp::create(builder, loc, typeOf(parts[0]).clone(sizes),
                                parts, builder.getI32IntegerAttr(dim));
}

Value TosaTarget::reverse(Value tensor, ArrayRef<int64_t> dims) {
  for (int64_t dim : dims)
    if (sizesOf(tensor)[dim] > 1)
      tensor = tosa::ReverseOp::create(builder, loc, tensor.getType(), tensor,
                                       builder.getI32IntegerAttr(dim));
  return tensor;
}

//===----------------------------------------------------------------------===//
// Reductions
//===----------------------------------------------------------------------===//

Value TosaTarget::reduceDim(ReductionKind kind, Value tensor, int64_t dim) {
  SmallVector<int64_t> sizes(sizesOf(tensor));
  sizes[dim] = 1;
  Type type = typeOf(tensor).clone(sizes);
  IntegerAttr axis = builder.getI32IntegerAttr(dim);
  switch (kind) {
  case ReductionKind::Sum:
    return tosa::ReduceSumOp::create(builder, loc, type, tensor, axis);
  case ReductionKind::Product:
    return tosa::ReduceProductOp::create(builder, loc, type, tensor, axis);
  case ReductionKind::Maximum:
    return tosa::ReduceMaxOp::create(builder, loc, type, tensor, axis);
  case ReductionKind::Minimum:
    return tosa::ReduceMinOp::create(builder, loc, type, tensor, axis);
  case ReductionKind::And:
    return tosa::ReduceAllOp::create(builder, loc, type, tensor, axis);
  case ReductionKind::Or:
    return tosa::ReduceAnyOp::create(builder, loc, type, tensor, axis);
  }
  llvm_unreachable("all kinds are handled");
}

Value TosaTarget::reduce(ReductionKind kind, Value tensor,
                         ArrayRef<int64_t> dims) {
  SmallVector<int64_t> kept;
  for (auto [dim, size] : llvm::enumerate(sizesOf(tensor)))
    if (!llvm::is_contained(dims, dim))
      kept.push_back(size);
  if (typeOf(tensor).getNumElements() == 0)
    return reject("TOSA has no tensors without elements",
                  typeOf(tensor).clone(kept));
  // Adjacent dimensions are reduced as one.
  SmallVector<int64_t> sizes;
  SmallVector<bool> isReduced;
  for (auto [dim, size] : llvm::enumerate(sizesOf(tensor))) {
    bool reduced = llvm::is_contained(dims, dim);
    if (!sizes.empty() && isReduced.back() == reduced) {
      sizes.back() *= size;
      continue;
    }
    sizes.push_back(size);
    isReduced.push_back(reduced);
  }
  tensor = reshape(tensor, sizes);
  for (auto [dim, reduced] : llvm::enumerate(isReduced))
    if (reduced && sizes[dim] != 1)
      tensor = reduceDim(kind, tensor, dim);
  return reshape(tensor, kept);
}

//===----------------------------------------------------------------------===//
// Products and gathers
//===----------------------------------------------------------------------===//

Value TosaTarget::matmul(Value left, Value right) {
  Type element = typeOf(left).getElementType();
  ArrayRef<int64_t> sizes = sizesOf(left);
  auto type =
      RankedTensorType::get({sizes[0], sizes[1], sizesOf(right)[2]}, element);
  if (!isa<FloatType>(element))
    return reject("the conversion to TOSA only multiplies matrices of floats",
                  type);
  Value zero = zeroPoint(element);
  return tosa::MatMulOp::create(builder, loc, type, left, right, zero, zero);
}

Value TosaTarget::gather(Value values, Value indices) {
  ArrayRef<int64_t> sizes = sizesOf(values);
  auto type = typeOf(values).clone({sizes[0], sizesOf(indices)[1], sizes[2]});
  return tosa::GatherOp::create(builder, loc, type, values, indices);
}

//===----------------------------------------------------------------------===//
// Convolutions
//===----------------------------------------------------------------------===//

/// Adds a spatial dimension of size 1 at the front.
static void addSpatialDim(ConvolutionWindow &window) {
  for (auto *list : {&window.padLow, &window.padHigh})
    list->insert(list->begin(), 0);
  for (auto *list :
       {&window.stride, &window.inputDilation, &window.weightDilation})
    list->insert(list->begin(), 1);
}

/// Applies to the input the parts of the window that tosa.conv2d doesn't
/// support, dilation of the input and cropping, and removes them from `window`.
/// Also crops the end, because tosa.conv2d requires that windows fill the input
/// exactly.
Value TosaTarget::applyToInput(Value input, Value weight,
                               ConvolutionWindow &window) {
  SmallVector<int64_t> low{0, 0}, high{0, 0}, interior{0, 0};
  for (int64_t i = 0; i < 2; ++i) {
    int64_t size = sizesOf(input)[i + 2];
    int64_t dilated = (size - 1) * window.inputDilation[i] + 1;
    int64_t reach = (sizesOf(weight)[i + 2] - 1) * window.weightDilation[i] + 1;
    int64_t total = dilated + window.padLow[i] + window.padHigh[i];
    window.padHigh[i] -= (total - reach) % window.stride[i];
    low.push_back(std::min<int64_t>(window.padLow[i], 0));
    high.push_back(std::min<int64_t>(window.padHigh[i], 0));
    interior.push_back(window.inputDilation[i] - 1);
    window.padLow[i] -= low.back();
    window.padHigh[i] -= high.back();
    window.inputDilation[i] = 1;
  }
  auto zero = mlir::cast<TypedAttr>(
      builder.getZeroAttr(typeOf(input).getElementType()));
  return pad(input, low, high, interior, zero);
}

/// Emits a tosa.conv2d for one group, two spatial dimensions, an input that
/// isn't dilated, and non-negative padding. TOSA requires channels last.
Value TosaTarget::convolveGroup(Value input, Value weight,
                                const ConvolutionWindow &window) {
  Type element = typeOf(input).getElementType();
  SmallVector<int64_t> result{sizesOf(input)[0], 0, 0, sizesOf(weight)[0]};
  for (int64_t i = 0; i < 2; ++i)
    result[i + 1] =
        window.resultSize(i, sizesOf(input)[i + 2], sizesOf(weight)[i + 2]);
  SmallVector<int64_t> last{0, 2, 3, 1};
  SmallVector<int64_t> pads{window.padLow[0], window.padHigh[0],
                            window.padLow[1], window.padHigh[1]};
  Value zero = zeroPoint(element);
  Value convolved = tosa::Conv2DOp::create(
      builder, loc, RankedTensorType::get(result, element),
      transpose(input, last), transpose(weight, last),
      zeros(result[3], element), zero, zero, builder.getDenseI64ArrayAttr(pads),
      builder.getDenseI64ArrayAttr(window.stride),
      builder.getDenseI64ArrayAttr(window.weightDilation),
      TypeAttr::get(element));
  return transpose(convolved, {0, 3, 1, 2});
}

Value TosaTarget::convolve(Value input, Value weight,
                           const ConvolutionWindow &given) {
  ConvolutionWindow window = given;
  SmallVector<int64_t> resultSizes{sizesOf(input)[0], sizesOf(weight)[0]};
  for (int64_t i = 0; i < window.spatialRank(); ++i)
    resultSizes.push_back(
        window.resultSize(i, sizesOf(input)[i + 2], sizesOf(weight)[i + 2]));
  Type resultType = typeOf(input).clone(resultSizes);
  if (window.spatialRank() > 2)
    return reject("the conversion to TOSA supports at most two dimensions",
                  resultType);
  if (window.spatialRank() == 1) {
    for (Value *tensor : {&input, &weight}) {
      SmallVector<int64_t> sizes(sizesOf(*tensor));
      sizes.insert(sizes.begin() + 2, 1);
      *tensor = reshape(*tensor, sizes);
    }
    addSpatialDim(window);
  }
  input = applyToInput(input, weight, window);
  int64_t groups = window.groups;
  window.groups = 1;
  int64_t inputs = sizesOf(weight)[1], outputs = sizesOf(weight)[0] / groups;
  SmallVector<Value> parts;
  for (int64_t group = 0; group < groups; ++group) {
    SmallVector<int64_t> offsets(4, 0), ones(4, 1);
    SmallVector<int64_t> sizes(sizesOf(input)), kernel(sizesOf(weight));
    offsets[1] = group * inputs;
    sizes[1] = inputs;
    Value part = slice(input, offsets, sizes, ones);
    offsets[1] = 0;
    offsets[0] = group * outputs;
    kernel[0] = outputs;
    parts.push_back(
        convolveGroup(part, slice(weight, offsets, kernel, ones), window));
  }
  return reshape(groups == 1 ? parts[0] : concatenate(parts, 1), resultSizes);
}
