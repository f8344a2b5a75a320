//===- fused_optimizers.h - torch.optim's steps with fused=True -*- C++ -*-===//

#ifndef TORCH_LTC_OPS_FUSED_OPTIMIZERS_H
#define TORCH_LTC_OPS_FUSED_OPTIMIZERS_H

namespace torch_ltc {

/// Registers kernels at key AutogradLazy.
void registerFusedOptimizers();

} // namespace torch_ltc

#endif // TORCH_LTC_OPS_FUSED_OPTIMIZERS_H
