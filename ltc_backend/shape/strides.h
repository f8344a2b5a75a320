//===- strides.h - Strides and offsets of results ---------------*- C++ -*-===//
//
// The elements of a lazy tensor are always packed in row-major order. The
// tensor reports the strides and the storage offset that eager PyTorch would
// report: models branch on contiguity, gradients have their parameter's layout,
// and `view` must fail where eager's does. So the geometry is metadata of the
// tensor, not of its value, and costs nothing in compiled programs.
//
// Results are row-major unless an operand isn't, or the op is a view.
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

/// The strides and the offset of a view, a result of rule `View`, whose sizes
/// are already known.
Geometry viewGeometry(ShapeRule shapeRule, const c10::FunctionSchema &schema,
                      c10::ArrayRef<c10::IValue> arguments,
                      c10::ArrayRef<int64_t> resultSizes);

/// The strides of the other rules for a result of these sizes.
Strides resultStrides(StrideRule rule, const c10::FunctionSchema &schema,
                      c10::ArrayRef<c10::IValue> arguments,
                      c10::ArrayRef<int64_t> resultSizes);

/// The value of the argument `memory_format`, or nullopt if it is absent or
/// None.
std::optional<at::MemoryFormat>
formatArgument(const c10::FunctionSchema &schema,
               c10::ArrayRef<c10::IValue> arguments);

/// The strides of a copy of `like`, by `clone` or `to` with a memory format.
Strides copyStrides(const at::Tensor &like,
                    std::optional<at::MemoryFormat> format);

/// Whether the strides are those of a new row-major tensor; `is_contiguous`
/// ignores dims of one element.
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

/// Dense strides in row-major order or in that of a memory format. Throws if
/// the format requires another rank.
Strides packedStrides(c10::ArrayRef<int64_t> sizes,
                      at::MemoryFormat format = at::MemoryFormat::Contiguous);

} // namespace torch_ltc

#endif // TORCH_LTC_SHAPE_STRIDES_H
