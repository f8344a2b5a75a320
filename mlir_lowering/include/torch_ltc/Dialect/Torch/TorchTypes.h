//===- TorchTypes.h - Types of the torch dialect ----------------*- C++ -*-===//

#ifndef TORCH_LTC_DIALECT_TORCH_TORCHTYPES_H
#define TORCH_LTC_DIALECT_TORCH_TORCHTYPES_H

#include "mlir/IR/BuiltinTypes.h"

#define GET_TYPEDEF_CLASSES
#include "torch_ltc/Dialect/Torch/TorchTypes.h.inc"

namespace mlir::torch_ltc::torch {

inline bool isTensorType(Type type) { return isa<ValueTensorType>(type); }
/// Whether the type is a tensor of complex numbers.
bool isComplexTensor(Type type);
/// Whether an operand, an element of a list operand, or a result is a tensor of
/// complex numbers.
bool hasComplexTensor(Operation *op);
inline bool isIntType(Type type) { return isa<IntType>(type); }
inline bool isFloatType(Type type) { return isa<FloatType>(type); }
inline bool isBoolType(Type type) { return isa<BoolType>(type); }
inline bool isStringType(Type type) { return isa<StringType>(type); }
inline bool isDeviceType(Type type) { return isa<DeviceType>(type); }
inline bool isGeneratorType(Type type) { return isa<GeneratorType>(type); }
inline bool isNoneType(Type type) { return isa<NoneType>(type); }
/// A Python number: int, float, or either.
inline bool isScalarType(Type type) {
  return isa<IntType, FloatType, NumberType>(type);
}
bool isOptionalTensorType(Type type);
bool isListOf(Type type, llvm::function_ref<bool(Type)> isElement);

/// Whether a value of type `type` is valid where `expected` is required: the
/// same type, a tensor with more static information, an int or float as a
/// number, a value or none as an optional.
bool isSubtype(Type type, Type expected);

} // namespace mlir::torch_ltc::torch

#endif // TORCH_LTC_DIALECT_TORCH_TORCHTYPES_H
