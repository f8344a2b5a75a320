//===- temporary_values.h - Memory of values between ops --------*- C++ -*-===//
//
// CPU kernels allocate their results with torch's allocator for the CPU, on the
// heap. A large value that is freed leaves a gap. If a small allocation then
// takes a part of the gap, the gap is too small for the next value of this
// size: the heap of an op-by-op run grew by half. So large values of such runs
// are allocated from the pool of buffers.
//
//===----------------------------------------------------------------------===//

#ifndef TORCH_LTC_PROGRAMS_TEMPORARY_VALUES_H
#define TORCH_LTC_PROGRAMS_TEMPORARY_VALUES_H

#include <ATen/core/Tensor.h>

namespace torch_ltc {

/// While such an object exists, large CPU tensors that this thread creates have
/// memory of the pool of buffers.
class TemporaryValues {
public:
  TemporaryValues();
  ~TemporaryValues();
  TemporaryValues(const TemporaryValues &) = delete;
  TemporaryValues &operator=(const TemporaryValues &) = delete;

private:
  bool before;
};

/// Whether the memory of a value is the pool's.
bool isPooled(const at::Tensor &value);

} // namespace torch_ltc

#endif // TORCH_LTC_PROGRAMS_TEMPORARY_VALUES_H
