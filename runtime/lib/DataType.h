//===- DataType.h - Element types and sizes -------------------------------===//

#ifndef TORCH_LTC_RUNTIME_DATATYPE_H
#define TORCH_LTC_RUNTIME_DATATYPE_H

#include "executable.pb.h"

#include <cstdint>
#include <optional>

namespace torch_ltc::runtime {

/// Bytes of one element; 0 for a value that isn't a data type (proto3 enums are
/// open).
inline uint64_t elementBytes(DType dtype) {
  switch (dtype) {
  case BOOL:
  case UINT8:
  case INT8:
    return 1;
  case INT16:
  case FLOAT16:
  case BFLOAT16:
    return 2;
  case INT32:
  case FLOAT32:
    return 4;
  case INT64:
  case FLOAT64:
  case COMPLEX64:
    return 8;
  case COMPLEX128:
    return 16;
  default:
    return 0;
  }
}

/// Alignment of an element in bytes; a complex number is aligned like its real
/// part.
inline uint64_t elementAlignment(DType dtype) {
  bool isComplex = dtype == COMPLEX64 || dtype == COMPLEX128;
  return isComplex ? elementBytes(dtype) / 2 : elementBytes(dtype);
}

/// PyTorch's name of the type.
inline const char *dtypeName(DType dtype) {
  switch (dtype) {
  case BOOL:
    return "bool";
  case UINT8:
    return "uint8";
  case INT8:
    return "int8";
  case INT16:
    return "int16";
  case INT32:
    return "int32";
  case INT64:
    return "int64";
  case FLOAT16:
    return "float16";
  case BFLOAT16:
    return "bfloat16";
  case FLOAT32:
    return "float32";
  case FLOAT64:
    return "float64";
  case COMPLEX64:
    return "complex64";
  case COMPLEX128:
    return "complex128";
  default:
    return "unknown dtype";
  }
}

/// Returns the product of `start` and all `factors`; std::nullopt if a factor
/// is negative or the product doesn't fit in 63 bits.
template <typename Range>
std::optional<uint64_t> checkedProduct(const Range &factors,
                                       uint64_t start = 1) {
  uint64_t product = start;
  for (int64_t factor : factors) {
    if (factor < 0 ||
        __builtin_mul_overflow(product, uint64_t(factor), &product))
      return std::nullopt;
  }
  if (product > uint64_t(INT64_MAX))
    return std::nullopt;
  return product;
}

} // namespace torch_ltc::runtime

#endif // TORCH_LTC_RUNTIME_DATATYPE_H
