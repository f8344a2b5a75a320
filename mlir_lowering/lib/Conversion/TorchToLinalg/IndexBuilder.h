//===- IndexBuilder.h - Arithmetic on positions -----------------*- C++ -*-===//

#ifndef TORCH_LTC_CONVERSION_TORCHTOLINALG_INDEXBUILDER_H
#define TORCH_LTC_CONVERSION_TORCHTOLINALG_INDEXBUILDER_H

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Builders.h"

namespace mlir::torch_ltc {

/// Emits arithmetic on values of type index, and accesses to tensor elements.
class IndexBuilder {
public:
  IndexBuilder(OpBuilder &builder, Location loc) : builder(builder), loc(loc) {}

  Value constant(int64_t value);
  Value add(Value a, Value b);
  Value add(Value a, int64_t b);
  Value sub(Value a, Value b);
  Value mul(Value a, int64_t b);
  /// Quotients, rounded down and up; `b` is positive, `a` may be negative.
  Value floorDiv(Value a, int64_t b);
  Value ceilDiv(Value a, int64_t b);
  Value max(Value a, Value b);
  Value min(Value a, Value b);
  Value less(Value a, Value b);
  Value equal(Value a, Value b);
  Value select(Value condition, Value yes, Value no);

  /// offset + sum of indices[i] * strides[i].
  Value linear(ValueRange indices, ArrayRef<int64_t> strides,
               int64_t offset = 0);

  /// Converts an element of an index tensor to an index below `size`. A
  /// negative integer counts from the end, and the index is clamped, so that no
  /// memory outside the indexed tensor is accessed.
  Value fromElement(Value element, int64_t size);
  /// Like the overload above, but clamps the index to `last`.
  Value fromElement(Value element, int64_t size, int64_t last);
  Value toInteger(Value index);
  Value toIndex(Value element);

  Value extract(Value tensor, ValueRange indices);
  Value insert(Value scalar, Value tensor, ValueRange indices);

  OpBuilder &builder;
  Location loc;
};

} // namespace mlir::torch_ltc

#endif // TORCH_LTC_CONVERSION_TORCHTOLINALG_INDEXBUILDER_H
