//===- adam.h - A step of Adam over all parameters --------------*- C++ -*-===//

#ifndef TORCH_LTC_OPS_ADAM_H
#define TORCH_LTC_OPS_ADAM_H

#include <ATen/core/Tensor.h>

#include <vector>

namespace torch_ltc {

struct AdamEntry {
  at::Tensor parameter, gradient, expAvg, expAvgSq;
  /// The parameter's step count: one float32 element on the CPU.
  at::Tensor step;
};

struct AdamOptions {
  double learningRate, beta1, beta2, weightDecay, eps;
  bool decoupled; // AdamW
};

struct AdamGroup {
  std::vector<AdamEntry> entries;
  AdamOptions options;
};

/// Increments the step counts and traces a step, one node for each parameter.
/// Returns false and changes nothing if adam_update doesn't support the
/// tensors; the caller then uses torch's implementation. Autograd must be off.
bool traceAdamStep(c10::ArrayRef<AdamGroup> groups);

} // namespace torch_ltc

#endif // TORCH_LTC_OPS_ADAM_H
