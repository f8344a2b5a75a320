//===- TensorBuilder.h - linalg on static-shape tensors ---------*- C++ -*-===//
//
// Emits the few forms of linalg and tensor ops that the lowerings use.
//
//===----------------------------------------------------------------------===//

#ifndef TORCH_LTC_CONVERSION_TORCHTOLINALG_TENSORBUILDER_H
#define TORCH_LTC_CONVERSION_TORCHTOLINALG_TENSORBUILDER_H

#include "ScalarBuilder.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

namespace mlir::torch_ltc {

class TensorBuilder {
public:
  /// Emits one element of each result; `inputs` are the operands' elements.
  using ElementBody = function_ref<SmallVector<Value>(OpBuilder &, Location,
                                                      ValueRange inputs)>;
  /// Emits the element of the result at `indices` (values of type index).
  using IndexedBody =
      function_ref<Value(OpBuilder &, Location, ValueRange indices)>;
  /// Combines elements of the operands with the accumulators.
  using ReductionBody = function_ref<SmallVector<Value>(
      OpBuilder &, Location, ValueRange inputs, ValueRange accumulators)>;
  /// One step of a nest of serial loops: returns the new tensor.
  using LoopBody = function_ref<Value(OpBuilder &, Location, ValueRange indices,
                                      Value tensor)>;

  TensorBuilder(OpBuilder &builder, Location loc)
      : builder(builder), loc(loc) {}

  /// A tensor without defined elements: a destination, never a result of the
  /// program.
  Value empty(ArrayRef<int64_t> sizes, Type elementType);
  /// A tensor whose elements all are `scalar`.
  Value fill(ArrayRef<int64_t> sizes, Value scalar);
  Value zeros(ArrayRef<int64_t> sizes, Type dtype);

  /// Computes each result element from the elements at the same position;
  /// dimensions of an operand that have size 1 or are missing at the front are
  /// broadcast.
  SmallVector<Value> elementwise(ArrayRef<int64_t> sizes,
                                 ArrayRef<Type> elementTypes, ValueRange inputs,
                                 ElementBody body);
  /// Like `elementwise`, but the body also gets the destinations' old elements,
  /// after those of the inputs. A loop that carries a tensor must update the
  /// tensor with this function.
  SmallVector<Value> update(ValueRange destinations, ValueRange inputs,
                            ElementBody body);
  /// Computes each result element from its indices; the body may read other
  /// tensors with tensor.extract.
  Value fromIndices(ArrayRef<int64_t> sizes, Type elementType,
                    IndexedBody body);
  Value convert(Value tensor, Type from, Type to);

  /// Reduces `dims` (sorted) of the inputs, which have the same shape, and
  /// removes these dimensions. `inits` are the initial scalars of the
  /// accumulators.
  SmallVector<Value> reduce(ValueRange inputs, ArrayRef<int64_t> dims,
                            ValueRange inits, ReductionBody body);

  Value broadcast(Value tensor, ArrayRef<int64_t> sizes);
  Value reshape(Value tensor, ArrayRef<int64_t> sizes);
  Value flatten(Value tensor);
  /// Permutes dimensions: result dimension i is dimension `permutation[i]` of
  /// the tensor.
  Value transpose(Value tensor, ArrayRef<int64_t> permutation);
  Value slice(Value tensor, ArrayRef<int64_t> offsets, ArrayRef<int64_t> sizes,
              ArrayRef<int64_t> strides);
  /// Like the overload above, but offsets may be values of type index, which
  /// must be in range.
  Value slice(Value tensor, ArrayRef<OpFoldResult> offsets,
              ArrayRef<int64_t> sizes, ArrayRef<int64_t> strides);
  /// Replaces the elements of `tensor` at the offsets by `source`.
  Value insert(Value source, Value tensor, ArrayRef<int64_t> offsets,
               ArrayRef<int64_t> strides);
  Value insert(Value source, Value tensor, ArrayRef<OpFoldResult> offsets,
               ArrayRef<int64_t> strides);
  Value concatenate(ValueRange parts, int64_t dim, ArrayRef<int64_t> sizes);

  /// Emits nested serial loops that carry `tensor` and run over all indices
  /// below `sizes`, in row-major order.
  Value loop(ArrayRef<int64_t> sizes, Value tensor, LoopBody body);

  OpBuilder &builder;
  Location loc;
  /// Whether a reshape was requested that changes the number of elements,
  /// because the op's types contradict each other. The value that was returned
  /// then has the requested shape, but no defined elements.
  bool isContradictory = false;
};

/// The sizes of a ranked tensor.
ArrayRef<int64_t> shapeOf(Value tensor);

/// Row-major strides of a tensor of these sizes, in elements.
SmallVector<int64_t> rowMajorStrides(ArrayRef<int64_t> sizes);

} // namespace mlir::torch_ltc

#endif // TORCH_LTC_CONVERSION_TORCHTOLINALG_TENSORBUILDER_H
