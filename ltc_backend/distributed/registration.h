//===- registration.h - Kernels for torch.distributed's ops -----*- C++ -*-===//

#ifndef TORCH_LTC_DISTRIBUTED_REGISTRATION_H
#define TORCH_LTC_DISTRIBUTED_REGISTRATION_H

namespace torch_ltc {

/// Registers collectives of lazy tensors at key Functionalize, and of CPU
/// tensors in front of the existing kernels at key CPU: collectives run in the
/// order of the program, whatever their tensors' devices.
void registerCollectives();

} // namespace torch_ltc

#endif // TORCH_LTC_DISTRIBUTED_REGISTRATION_H
