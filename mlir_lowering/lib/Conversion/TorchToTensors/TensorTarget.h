//===- TensorTarget.h - A dialect of whole-tensor ops -----------*- C++ -*-===//
//
// TOSA and StableHLO have much in common: ops on whole tensors of static shape,
// and no loops. `TensorTarget` declares the operations that lowerings use, and
// each dialect implements them. If a dialect lacks an operation, the target
// calls `reject` with a reason, and the lowering of the op fails with this
// reason.
//
//===----------------------------------------------------------------------===//

#ifndef TORCH_LTC_CONVERSION_TORCHTOTENSORS_TENSORTARGET_H
#define TORCH_LTC_CONVERSION_TORCHTOTENSORS_TENSORTARGET_H

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Value.h"

#include <memory>
#include <string>

namespace mlir::torch_ltc {

enum class ReductionKind { Sum, Product, Maximum, Minimum, And, Or };

/// The window of a convolution of an input [n, c, ...] with a weight
/// [o, c / groups, ...] to a result [n, o, ...]. Each list has one element for
/// each spatial dimension. A dilated input has zeros between its elements;
/// negative padding crops.
struct ConvolutionWindow {
  SmallVector<int64_t> stride, padLow, padHigh, inputDilation, weightDilation;
  int64_t groups = 1;

  int64_t spatialRank() const { return stride.size(); }
  int64_t resultSize(int64_t dim, int64_t input, int64_t weight) const;
};

class TensorTarget {
public:
  TensorTarget(OpBuilder &builder, Location loc) : builder(builder), loc(loc) {}
  virtual ~TensorTarget() = default;

  /// The dialect's name for users: "TOSA".
  virtual StringRef getName() const = 0;
  /// The element type for torch's `dtype`; null if the dialect has none.
  virtual Type elementTypeOf(Type dtype) const = 0;
  /// The element type of a dynamic scalar of this dtype (f64, si64, i1).
  virtual Type numberTypeOf(Type dtype) const = 0;

  virtual bool hasEmptyTensors() const = 0;

  virtual Value constant(DenseElementsAttr value) = 0;
  /// A tensor whose elements all are `scalar`.
  Value splat(ArrayRef<int64_t> sizes, TypedAttr scalar);
  Value zeros(ArrayRef<int64_t> sizes, Type elementType);
  /// The tensor [0, 1, 2, ...] of `size` elements.
  virtual Value iota(int64_t size, Type elementType) = 0;

  virtual Value reshape(Value tensor, ArrayRef<int64_t> sizes) = 0;
  /// Permutes dimensions: result dimension i is dimension `permutation[i]` of
  /// the tensor.
  virtual Value transpose(Value tensor, ArrayRef<int64_t> permutation) = 0;
  /// Broadcasts dimensions that have size 1 or are missing at the front.
  virtual Value broadcast(Value tensor, ArrayRef<int64_t> sizes) = 0;
  virtual Value slice(Value tensor, ArrayRef<int64_t> offsets,
                      ArrayRef<int64_t> sizes, ArrayRef<int64_t> strides) = 0;
  /// Pads each dimension with `scalar`: `low` times in front, `high` times at
  /// the end and `interior` times between neighbors. A negative `low` or `high`
  /// crops.
  virtual Value pad(Value tensor, ArrayRef<int64_t> low, ArrayRef<int64_t> high,
                    ArrayRef<int64_t> interior, TypedAttr scalar) = 0;
  virtual Value concatenate(ValueRange parts, int64_t dim) = 0;
  virtual Value reverse(Value tensor, ArrayRef<int64_t> dims) = 0;

  /// Reduces the dimensions `dims` (sorted) and removes them.
  virtual Value reduce(ReductionKind kind, Value tensor,
                       ArrayRef<int64_t> dims) = 0;
  /// Multiplies matrices: [b, m, k] x [b, k, n] -> [b, m, n].
  virtual Value matmul(Value left, Value right) = 0;
  /// Gathers rows: `values` [n, k, c] at `indices` [n, w] (integers) -> [n, w,
  /// c].
  virtual Value gather(Value values, Value indices) = 0;
  virtual Value convolve(Value input, Value weight,
                         const ConvolutionWindow &window) = 0;

  /// Called with a body that is about to be converted with `elementwise`:
  /// expands the math functions that the dialect lacks.
  virtual LogicalResult expandScalarCode(Operation *) { return success(); }
  /// Converts an op of arith or math on scalars to an op on tensors of the same
  /// rank. Dimensions of size 1 are broadcast.
  virtual Value elementwise(Operation *op, ValueRange operands) = 0;

  /// Records why the dialect doesn't support an operation, as a clause ("TOSA
  /// has no remainder of floats"). Returns a placeholder of type `type`.
  Value reject(const Twine &reason, Type type);
  bool hasFailed() const { return !failure.empty(); }
  StringRef getFailure() const { return failure; }

  static RankedTensorType typeOf(Value tensor) {
    return cast<RankedTensorType>(tensor.getType());
  }
  static ArrayRef<int64_t> sizesOf(Value tensor) {
    return typeOf(tensor).getShape();
  }

protected:
  /// Like the overload above, with a reason that names the op and the dialect.
  Value reject(Operation *op, Type type);

  OpBuilder &builder;
  Location loc;

private:
  std::string failure;
};

/// Creates the target for one op.
using TensorTargetFactory =
    std::unique_ptr<TensorTarget> (*)(OpBuilder &builder, Location loc);

/// The predicate whose negation is `predicate` (OGE for ULT, UNO for ORD), for
/// dialects whose comparisons are false for NaNs. None for other predicates.
std::optional<arith::CmpFPredicate>
negatedUnordered(arith::CmpFPredicate predicate);

/// The signed predicate for an unsigned one (slt for ult). Returns other
/// predicates unchanged.
arith::CmpIPredicate signedPredicate(arith::CmpIPredicate predicate);

/// The shape to which tensors of the same rank broadcast.
SmallVector<int64_t> broadcastSizes(ValueRange tensors);

} // namespace mlir::torch_ltc

#endif // TORCH_LTC_CONVERSION_TORCHTOTENSORS_TENSORTARGET_H
