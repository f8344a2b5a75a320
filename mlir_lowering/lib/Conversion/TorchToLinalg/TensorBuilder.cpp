//===- TensorBuilder.cpp - linalg on static-shape tensors -----------------===//

#include "TensorBuilder.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/ReshapeOpsUtils.h"

using namespace mlir;
using namespace mlir::torch_ltc;

ArrayRef<int64_t> torch_ltc::shapeOf(Value tensor) {
  return cast<RankedTensorType>(tensor.getType()).getShape();
}

static Type elementTypeOf(Value tensor) {
  return cast<RankedTensorType>(tensor.getType()).getElementType();
}

SmallVector<int64_t> torch_ltc::rowMajorStrides(ArrayRef<int64_t> sizes) {
  SmallVector<int64_t> strides(sizes.size(), 1);
  for (int64_t i = static_cast<int64_t>(sizes.size()) - 2; i >= 0; --i)
    strides[i] = strides[i + 1] * sizes[i + 1];
  return strides;
}

Value TensorBuilder::empty(ArrayRef<int64_t> sizes, Type elementType) {
  return tensor::EmptyOp::create(builder, loc, sizes, elementType);
}

Value TensorBuilder::fill(ArrayRef<int64_t> sizes, Value scalar) {
  // Don't emit a linalg.fill for an empty tensor: its kernel would have to pass
  // a memref<3x0xf32> as a bare pointer, which MLIR 22 can't.
  if (llvm::is_contained(sizes, 0))
    return elementwise(sizes, scalar.getType(), {},
                       [&](OpBuilder &, Location, ValueRange) {
                         return SmallVector<Value>{scalar};
                       })[0];
  Value destination = empty(sizes, scalar.getType());
  return linalg::FillOp::create(builder, loc, scalar, destination).getResult(0);
}

Value TensorBuilder::zeros(ArrayRef<int64_t> sizes, Type dtype) {
  return fill(sizes, ScalarBuilder(builder, loc, dtype).integer(0));
}

//===----------------------------------------------------------------------===//
// Elementwise
//===----------------------------------------------------------------------===//

/// Maps a result index (d0, d1, ...) to the operand's element that is broadcast
/// to it.
static AffineMap broadcastMap(ArrayRef<int64_t> from, ArrayRef<int64_t> to,
                              MLIRContext *context) {
  SmallVector<AffineExpr> expressions;
  int64_t missing = static_cast<int64_t>(to.size() - from.size());
  for (auto [dim, size] : llvm::enumerate(from)) {
    int64_t target = static_cast<int64_t>(dim) + missing;
    expressions.push_back(size == 1 && to[target] != 1
                              ? getAffineConstantExpr(0, context)
                              : getAffineDimExpr(target, context));
  }
  return AffineMap::get(to.size(), 0, expressions, context);
}

SmallVector<Value> TensorBuilder::elementwise(ArrayRef<int64_t> sizes,
                                              ArrayRef<Type> elementTypes,
                                              ValueRange inputs,
                                              ElementBody body) {
  SmallVector<Value> destinations;
  for (Type elementType : elementTypes)
    destinations.push_back(empty(sizes, elementType));
  return update(destinations, inputs,
                [&](OpBuilder &nested, Location loc, ValueRange arguments) {
                  return body(nested, loc, arguments.take_front(inputs.size()));
                });
}

SmallVector<Value> TensorBuilder::update(ValueRange destinations,
                                         ValueRange inputs, ElementBody body) {
  MLIRContext *context = builder.getContext();
  ArrayRef<int64_t> sizes = shapeOf(destinations[0]);
  SmallVector<AffineMap> maps;
  for (Value input : inputs)
    maps.push_back(broadcastMap(shapeOf(input), sizes, context));
  maps.append(destinations.size(),
              AffineMap::getMultiDimIdentityMap(sizes.size(), context));
  SmallVector<utils::IteratorType> iterators(sizes.size(),
                                             utils::IteratorType::parallel);
  auto generic = linalg::GenericOp::create(
      builder, loc, destinations.getTypes(), inputs, destinations, maps,
      iterators, [&](OpBuilder &nested, Location loc, ValueRange arguments) {
        linalg::YieldOp::create(nested, loc, body(nested, loc, arguments));
      });
  return llvm::to_vector_of<Value>(generic.getResults());
}

Value TensorBuilder::fromIndices(ArrayRef<int64_t> sizes, Type elementType,
                                 IndexedBody body) {
  return elementwise(
      sizes, elementType, {}, [&](OpBuilder &nested, Location loc, ValueRange) {
        SmallVector<Value> indices;
        for (size_t dim = 0; dim < sizes.size(); ++dim)
          indices.push_back(linalg::IndexOp::create(nested, loc, dim));
        return SmallVector<Value>{body(nested, loc, indices)};
      })[0];
}

Value TensorBuilder::convert(Value tensor, Type from, Type to) {
  if (storageTypeOf(from) == storageTypeOf(to) && isBool(from) == isBool(to))
    return tensor;
  return elementwise(shapeOf(tensor), storageTypeOf(to), tensor,
                     [&](OpBuilder &nested, Location loc, ValueRange inputs) {
                       ScalarBuilder scalars(nested, loc, to);
                       return SmallVector<Value>{
                           scalars.convert(inputs[0], from, to)};
                     })[0];
}

//===----------------------------------------------------------------------===//
// Reductions
//===----------------------------------------------------------------------===//

SmallVector<Value> TensorBuilder::reduce(ValueRange inputs,
                                         ArrayRef<int64_t> dims,
                                         ValueRange inits, ReductionBody body) {
  MLIRContext *context = builder.getContext();
  ArrayRef<int64_t> sizes = shapeOf(inputs[0]);
  SmallVector<utils::IteratorType> iterators(sizes.size(),
                                             utils::IteratorType::parallel);
  SmallVector<AffineExpr> keptDims;
  SmallVector<int64_t> keptSizes;
  for (auto [dim, size] : llvm::enumerate(sizes)) {
    if (llvm::is_contained(dims, static_cast<int64_t>(dim))) {
      iterators[dim] = utils::IteratorType::reduction;
      continue;
    }
    keptDims.push_back(getAffineDimExpr(dim, context));
    keptSizes.push_back(size);
  }
  SmallVector<AffineMap> maps(
      inputs.size(), AffineMap::getMultiDimIdentityMap(sizes.size(), context));
  maps.append(inits.size(), AffineMap::get(sizes.size(), 0, keptDims, context));
  SmallVector<Value> accumulators;
  SmallVector<Type> types;
  for (Value init : inits) {
    accumulators.push_back(fill(keptSizes, init));
    types.push_back(accumulators.back().getType());
  }
  auto generic = linalg::GenericOp::create(
      builder, loc, types, inputs, accumulators, maps, iterators,
      [&](OpBuilder &nested, Location loc, ValueRange arguments) {
        SmallVector<Value> results =
            body(nested, loc, arguments.take_front(inputs.size()),
                 arguments.drop_front(inputs.size()));
        linalg::YieldOp::create(nested, loc, results);
      });
  return llvm::to_vector_of<Value>(generic.getResults());
}

//===----------------------------------------------------------------------===//
// Shapes
//===----------------------------------------------------------------------===//

Value TensorBuilder::broadcast(Value tensor, ArrayRef<int64_t> sizes) {
  if (shapeOf(tensor) == sizes)
    return tensor;
  return elementwise(sizes, elementTypeOf(tensor), tensor,
                     [](OpBuilder &, Location, ValueRange inputs) {
                       return SmallVector<Value>{inputs[0]};
                     })[0];
}

Value TensorBuilder::reshape(Value tensor, ArrayRef<int64_t> sizes) {
  auto type = cast<RankedTensorType>(tensor.getType());
  if (type.getShape() == sizes)
    return tensor;
  auto target = RankedTensorType::get(sizes, type.getElementType());
  isContradictory |= target.getNumElements() != type.getNumElements();
  if (isContradictory)
    return empty(sizes, type.getElementType());
  // Dimensions of size 0 can't be regrouped, and there is nothing to move.
  if (target.getNumElements() == 0)
    return zeros(sizes, type.getElementType());
  if (auto fill = tensor.getDefiningOp<linalg::FillOp>())
    return this->fill(sizes, fill.value());
  if (type.getRank() == 0)
    return tensor::ExpandShapeOp::create(builder, loc, target, tensor,
                                         ArrayRef<ReassociationIndices>());
  if (target.getRank() == 0)
    return tensor::CollapseShapeOp::create(builder, loc, target, tensor,
                                           ArrayRef<ReassociationIndices>());
  if (auto groups = getReassociationIndicesForReshape(type, target)) {
    if (target.getRank() < type.getRank())
      return tensor::CollapseShapeOp::create(builder, loc, target, tensor,
                                             *groups);
    return tensor::ExpandShapeOp::create(builder, loc, target, tensor, *groups);
  }
  return reshape(flatten(tensor), sizes);
}

Value TensorBuilder::flatten(Value tensor) {
  auto type = cast<RankedTensorType>(tensor.getType());
  if (type.getRank() == 1)
    return tensor;
  int64_t elements = type.getNumElements();
  return reshape(tensor, elements);
}

Value TensorBuilder::transpose(Value tensor, ArrayRef<int64_t> permutation) {
  if (llvm::equal(permutation, llvm::seq<int64_t>(0, permutation.size())))
    return tensor;
  ArrayRef<int64_t> sizes = shapeOf(tensor);
  SmallVector<int64_t> permuted;
  for (int64_t dim : permutation)
    permuted.push_back(sizes[dim]);
  Value destination = empty(permuted, elementTypeOf(tensor));
  return linalg::TransposeOp::create(builder, loc, tensor, destination,
                                     permutation)
      ->getResult(0);
}

static SmallVector<OpFoldResult> asIndexAttrs(OpBuilder &builder,
                                              ArrayRef<int64_t> values) {
  return getAsIndexOpFoldResult(builder.getContext(), values);
}

Value TensorBuilder::slice(Value tensor, ArrayRef<int64_t> offsets,
                           ArrayRef<int64_t> sizes, ArrayRef<int64_t> strides) {
  return slice(tensor, asIndexAttrs(builder, offsets), sizes, strides);
}

Value TensorBuilder::slice(Value tensor, ArrayRef<OpFoldResult> offsets,
                           ArrayRef<int64_t> sizes, ArrayRef<int64_t> strides) {
  if (shapeOf(tensor) == sizes)
    return tensor;
  // An empty slice may start at the end, which tensor.extract_slice rejects.
  if (llvm::is_contained(sizes, 0))
    return zeros(sizes, elementTypeOf(tensor));
  return tensor::ExtractSliceOp::create(builder, loc, tensor, offsets,
                                        asIndexAttrs(builder, sizes),
                                        asIndexAttrs(builder, strides));
}

Value TensorBuilder::insert(Value source, Value tensor,
                            ArrayRef<int64_t> offsets,
                            ArrayRef<int64_t> strides) {
  return insert(source, tensor, asIndexAttrs(builder, offsets), strides);
}

Value TensorBuilder::insert(Value source, Value tensor,
                            ArrayRef<OpFoldResult> offsets,
                            ArrayRef<int64_t> strides) {
  ArrayRef<int64_t> sizes = shapeOf(source);
  if (llvm::is_contained(sizes, 0))
    return tensor;
  if (sizes == shapeOf(tensor))
    return source;
  return tensor::InsertSliceOp::create(builder, loc, source, tensor, offsets,
                                       asIndexAttrs(builder, sizes),
                                       asIndexAttrs(builder, strides));
}

Value TensorBuilder::concatenate(ValueRange parts, int64_t dim,
                                 ArrayRef<int64_t> sizes) {
  Value result = empty(sizes, elementTypeOf(parts[0]));
  SmallVector<int64_t> offsets(sizes.size(), 0), strides(sizes.size(), 1);
  for (Value part : parts) {
    result = insert(part, result, offsets, strides);
    offsets[dim] += shapeOf(part)[dim];
  }
  return result;
}

//===----------------------------------------------------------------------===//
// Loops
//===----------------------------------------------------------------------===//

Value TensorBuilder::loop(ArrayRef<int64_t> sizes, Value tensor,
                          LoopBody body) {
  SmallVector<Value> lower, upper, steps;
  for (int64_t size : sizes) {
    lower.push_back(arith::ConstantIndexOp::create(builder, loc, 0));
    upper.push_back(arith::ConstantIndexOp::create(builder, loc, size));
    steps.push_back(arith::ConstantIndexOp::create(builder, loc, 1));
  }
  if (sizes.empty())
    return body(builder, loc, {}, tensor);
  scf::LoopNest nest = scf::buildLoopNest(
      builder, loc, lower, upper, steps, tensor,
      [&](OpBuilder &nested, Location loc, ValueRange indices,
          ValueRange carried) {
        return scf::ValueVector{body(nested, loc, indices, carried[0])};
      });
  return nest.results[0];
}
