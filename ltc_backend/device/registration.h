//===- registration.h - Kernels of the Lazy dispatch keys -------*- C++ -*-===//

#ifndef TORCH_LTC_DEVICE_REGISTRATION_H
#define TORCH_LTC_DEVICE_REGISTRATION_H

namespace torch_ltc {

/// Registers the kernels that can create the first lazy tensor; to be called at
/// `import torch`. When that tensor is created, a hook registers a kernel at
/// key Lazy for every other op: hand-written, traced or the fallback.
void registerFirstKernels();

} // namespace torch_ltc

#endif // TORCH_LTC_DEVICE_REGISTRATION_H
