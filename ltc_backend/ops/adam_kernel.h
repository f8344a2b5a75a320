//===- adam_kernel.h - Adam's update of one parameter on the CPU *- C++ -*-===//

#ifndef TORCH_LTC_OPS_ADAM_KERNEL_H
#define TORCH_LTC_OPS_ADAM_KERNEL_H

#include <ATen/core/Tensor.h>

namespace torch_ltc {

/// The numbers of torch's formula (_multi_tensor_adam in torch/optim/adam.py).
struct AdamNumbers {
  double lerpWeight, beta2, value, bias2Root, eps, negativeStepSize, decay;
};

/// Writes the updated parameter and the new averages of the gradient and of its
/// square. Each element has the bits of eager's sequence of ops. All tensors
/// are contiguous, have equal sizes and the same dtype (float32 or float64). A
/// result may have the memory of the operand that it updates.
void updateWithAdam(const at::Tensor &self, const at::Tensor &grad,
                    const at::Tensor &expAvg, const at::Tensor &expAvgSq,
                    const AdamNumbers &numbers, const at::Tensor &newSelf,
                    const at::Tensor &newAvg, const at::Tensor &newSq);

} // namespace torch_ltc

#endif // TORCH_LTC_OPS_ADAM_KERNEL_H
