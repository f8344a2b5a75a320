//===- autograd.cpp - Composites that need another way above autograd -----===//

#include "tracer/registration.h"

#include <ATen/Functions.h>
#include <ATen/ops/_native_batch_norm_legit.h>

using namespace torch_ltc;

namespace {

/// torch's composite ends in native_batch_norm, whose schema doesn't say that
/// it writes the running statistics (torch 2.13), so functionalisation would
/// lose the update. The `_legit` op says it.
at::Tensor batchNorm(const at::Tensor &input,
                     const std::optional<at::Tensor> &weight,
                     const std::optional<at::Tensor> &bias,
                     const std::optional<at::Tensor> &runningMean,
                     const std::optional<at::Tensor> &runningVar, bool training,
                     double momentum, double eps, bool) {
  bool hasStatistics = runningMean && runningMean->defined() && runningVar &&
                       runningVar->defined();
  TORCH_CHECK(hasStatistics || training,
              "Expected running_mean and running_var to be defined when "
              "training=False");
  if (!training) // reads the statistics only
    return std::get<0>(at::native_batch_norm(input, weight, bias, runningMean,
                                             runningVar, false, momentum, eps));
  if (!hasStatistics)
    return std::get<0>(
        at::_native_batch_norm_legit(input, weight, bias, true, momentum, eps));
  at::Tensor mean = *runningMean, variance = *runningVar;
  return std::get<0>(at::_native_batch_norm_legit(
      input, weight, bias, mean, variance, true, momentum, eps));
}

/// Functionalisation (torch 2.13) asserts when a CPU tensor is written with a
/// lazy one. The lazy one is read first, differentiably.
void copyInPlace(const c10::OperatorHandle &op, torch::jit::Stack *stack) {
  auto arguments = torch::jit::last(*stack, 3);
  const at::Tensor &self = arguments[0].toTensor();
  if (self.defined() && !self.device().is_lazy()) {
    at::Tensor source = arguments[1].toTensor().to(self.device());
    (*stack)[stack->size() - 2] = std::move(source);
    op.callBoxed(stack);
    return;
  }
  // Our kernel has hidden torch's for this device; it is the same for all.
  op.callBoxedForDispatchKey(c10::DispatchKey::Autograd, *stack);
}

} // namespace

void torch_ltc::registerAutogradKernels(torch::Library &library) {
  library.impl("batch_norm", TORCH_FN(batchNorm));
  library.impl("copy_",
               torch::CppFunction::makeFromBoxedFunction<&copyInPlace>());
}
