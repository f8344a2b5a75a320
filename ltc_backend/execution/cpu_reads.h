//===- cpu_reads.h - Values of CPU tensors that a step reads ----*- C++ -*-===//
//
// A replay doesn't repeat what the recorded call computed eagerly on the CPU.
// If the call read a value of an argument or of a random draw (for example,
// with `item()`), the next call may read a different value, so the replay would
// be wrong. CpuReads finds such reads.
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
  /// Watches the ops of the calling thread until `close`. `arguments`: the
  /// call's tensors.
  explicit CpuReads(const std::vector<at::Tensor> &arguments);
  ~CpuReads() { close(); }
  void close();
  /// Whether the thread read a value of an argument or of a random draw.
  bool found() const;

private:
  struct State;
  std::shared_ptr<State> state;
  at::CallbackHandle handle = 0;
};

} // namespace torch_ltc

#endif // TORCH_LTC_EXECUTION_CPU_READS_H
