//===- backend_call.h - Calls to a group's CPU backend ----------*- C++ -*-===//
//
// In programs, a collective has one packed input tensor and one packed output
// tensor, in which lists of tensors are concatenated. Each has this many
// elements:
//
//   kind            numbers after the timeout      input        output
//   all_reduce      reduction                      n            n
//   reduce          reduction, root                n            n
//   broadcast       root                           n            n
//   all_gather                                     n            ranks * n
//   gather          root                           n            ranks * n, or 0
//   scatter         root                           ranks * n, or n       n
//   reduce_scatter  reduction                      ranks * n    n
//   all_to_all      output splits, input splits    (sum)        (sum)
//   send            rank, tag                      n            0
//   receive         rank, tag                      n            n
//   receive_any     tag                            n            n
//   await                                          order'       0
//
// The size after "or" is that of ranks other than the root; "(sum)" is the sum
// of the tensor's own splits. An input that isn't read (of `receive`, or of
// `scatter` except at the root) only provides the dtype. `await` waits for a
// collective that was started. The first of the numbers is the timeout in
// milliseconds, or -1 for the group's timeout.
//
//===----------------------------------------------------------------------===//

#ifndef TORCH_LTC_DISTRIBUTED_BACKEND_CALL_H
#define TORCH_LTC_DISTRIBUTED_BACKEND_CALL_H

#include <ATen/core/Tensor.h>
#include <torch/csrc/distributed/c10d/Work.hpp>

#include <string_view>

namespace torch_ltc {

struct BackendCall {
  std::string_view kind;
  int64_t group;
  at::IntArrayRef numbers;
};

/// Starts the collective. The backend uses both tensors until the work is done.
/// `output` need not be initialized; for all_reduce, reduce and broadcast it
/// may be `input`.
c10::intrusive_ptr<c10d::Work> begin(const BackendCall &call,
                                     const at::Tensor &input,
                                     const at::Tensor &output);

} // namespace torch_ltc

#endif // TORCH_LTC_DISTRIBUTED_BACKEND_CALL_H
