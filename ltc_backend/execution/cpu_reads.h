//===- cpu_reads.h - Values of CPU tensors that a step reads ----*- C++ -*-===//
//
// What a step computes eagerly on the CPU isn't part of its program. That is
// correct as long as the next call would compute the same. It is wrong for a
// number that was read from an argument, or from a random draw.
//
//===----------------------------------------------------------------------===//

#ifndef TORCH_LTC_EXECUTION_CPU_READS_H
#define TORCH_LTC_EXECUTION_CPU_READS_H

#include <ATen/core/Tensor.h>
#include <ATen/record_function.h>

#include <memory>
#include <vector>

namespace torch_ltc {

class CpuReads {
public:
  /// Watches the ops of the calling thread until `close`.
  explicit CpuReads(const std::vector<at::Tensor> &arguments);
  ~CpuReads() { close(); }
  void close();
  bool found() const;

private:
  struct State;
  std::shared_ptr<State> state;
  at::CallbackHandle handle = 0;
};

} // namespace torch_ltc

#endif // TORCH_LTC_EXECUTION_CPU_READS_H
