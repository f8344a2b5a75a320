//===- adam.h - A step of Adam over all parameters --------------*- C++ -*-===//

#ifndef TORCH_LTC_OPS_ADAM_H
#define TORCH_LTC_OPS_ADAM_H

#include <ATen/core/Tensor.h>

#include <vector>

namespace torch_ltc {

struct AdamEntry {
  at::Tensor parameter, gradient, expAvg, expAvgSq;
  /// On the CPU: how many steps the parameter has made.
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

/// Counts a step and traces it, one node a parameter. False, with nothing
/// changed, where the tensors aren't what the node is for: then the caller
/// takes torch's own way. Autograd is off.
bool traceAdamStep(c10::ArrayRef<AdamGroup> groups);

} // namespace torch_ltc

#endif // TORCH_LTC_OPS_ADAM_H
