//===- host_calls.h - Commands that PyTorch's kernels compute ------*- C++
//-*-===//

#ifndef TORCH_LTC_EXECUTOR_HOST_CALLS_H
#define TORCH_LTC_EXECUTOR_HOST_CALLS_H

namespace torch_ltc {

/// Lets programs call PyTorch's CPU kernels: the op table's rows with
/// lower = "host", and sorts.
void registerHostCalls();

} // namespace torch_ltc

#endif // TORCH_LTC_EXECUTOR_HOST_CALLS_H
