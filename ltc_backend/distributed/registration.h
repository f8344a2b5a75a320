//===- registration.h - Kernels for torch.distributed's ops -----*- C++ -*-===//

#ifndef TORCH_LTC_DISTRIBUTED_REGISTRATION_H
#define TORCH_LTC_DISTRIBUTED_REGISTRATION_H

namespace torch_ltc {

/// Registers kernels for collectives of lazy tensors at key Functionalize, and
/// wraps the kernels for CPU tensors at key CPU, so that collectives of both
/// run in program order.
void registerCollectives();

} // namespace torch_ltc

#endif // TORCH_LTC_DISTRIBUTED_REGISTRATION_H
