//===- masked_write.h - Writes to the elements of a mask --------*- C++ -*-===//

#ifndef TORCH_LTC_OPS_MASKED_WRITE_H
#define TORCH_LTC_OPS_MASKED_WRITE_H

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include <optional>
#include <vector>

namespace torch_ltc {

/// A write `self[:, ..., mask] = values` whose values don't depend on the
/// number of selected elements. Its result is
/// `where(mask.view(maskSizes), values.view(valueSizes), self)`.
struct MaskedWrite {
  at::Tensor mask;
  std::vector<int64_t> maskSizes, valueSizes;
};

/// Returns the write if one mask on device lazy is the only index of
/// `index_put`, and `values`, of the dtype of `self`, can be broadcast to the
/// selected elements whatever their number. Otherwise returns none.
std::optional<MaskedWrite> maskedWrite(const at::Tensor &self,
                                       const c10::IValue &indices,
                                       const at::Tensor &values);

} // namespace torch_ltc

#endif // TORCH_LTC_OPS_MASKED_WRITE_H
