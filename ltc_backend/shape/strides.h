//===- strides.h - Strides and offsets of results ---------------*- C++ -*-===//
//
// The elements of a lazy tensor are always packed in row-major order. The
// tensor reports the strides and the storage offset that eager PyTorch would
// report: models branch on contiguity, gradients have their parameter's layout,
// and `view` must fail where eager's does. So the geometry is metadata of the
// tensor, not of its value, and costs nothing in compiled programs.
//
// Results are row-major unless the op is a view, an operand isn't row-major, or
// eager's kernel writes a different order (for example, LAPACK's columns).
//
//===----------------------------------------------------------------------===//

#ifndef TORCH_LTC_SHAPE_STRIDES_H
#define TORCH_LTC_SHAPE_STRIDES_H

#include "shape/shape_inference.h"

#include <ATen/core/Tensor.h>
#include <c10/core/MemoryFormat.h>

#include <algorithm>
#include <optional>

namespace torch_ltc {

// Enumerators come from the op table: ir/op_record.h.
enum class StrideRule : uint8_t;

using Strides = c10::SmallVector<int64_t, 6>;

struct Geometry {
  Strides strides;
  int64_t offset = 0;
};

/// Returns the strides and the offset of a view of sizes `resultSizes`, that
/// is, of a result of rule `View`.
Geometry viewGeometry(ShapeRule shapeRule, const c10::FunctionSchema &schema,
                      c10::ArrayRef<c10::IValue> arguments,
                      c10::ArrayRef<int64_t> resultSizes);

/// Returns the strides of a result of sizes `resultSizes` by a rule other than
/// `View`.
Strides resultStrides(StrideRule rule, const c10::FunctionSchema &schema,
                      c10::ArrayRef<c10::IValue> arguments,
                      c10::ArrayRef<int64_t> resultSizes);

/// The value of the argument `memory_format`, or nullopt if it is absent or
/// None.
std::optional<at::MemoryFormat>
formatArgument(const c10::FunctionSchema &schema,
               c10::ArrayRef<c10::IValue> arguments);

/// Returns the strides of the copy of `like` that `clone` or `to` makes with
/// `format` (by default, the preserve format).
Strides copyStrides(const at::Tensor &like,
                    std::optional<at::MemoryFormat> format);

/// Whether the strides are those of a new row-major tensor. Unlike
/// `is_contiguous`, also checks the strides of dims of size 1.
inline bool hasPackedStrides(const at::Tensor &tensor) {
  at::IntArrayRef sizes = tensor.sizes(), strides = tensor.strides();
  int64_t next = 1;
  for (size_t i = sizes.size(); i-- > 0;) {
    if (strides[i] != next)
      return false;
    next *= std::max<int64_t>(sizes[i], 1);
  }
  return true;
}

/// Returns dense strides in row-major order or in the order of a memory format.
/// Throws if the format requires a different rank.
Strides packedStrides(c10::ArrayRef<int64_t> sizes,
                      at::MemoryFormat format = at::MemoryFormat::Contiguous);

} // namespace torch_ltc

#endif // TORCH_LTC_SHAPE_STRIDES_H
