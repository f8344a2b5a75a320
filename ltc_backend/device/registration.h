//===- registration.h - Kernels of the Lazy dispatch keys -------*- C++ -*-===//

#ifndef TORCH_LTC_DEVICE_REGISTRATION_H
#define TORCH_LTC_DEVICE_REGISTRATION_H

namespace torch_ltc {

/// Registers the kernels that create the first tensor of the device, at `import
/// torch`; when that exists, a kernel for every other op at the Lazy key:
/// traced, hand-written, or the fallback.
void registerFirstKernels();

} // namespace torch_ltc

#endif // TORCH_LTC_DEVICE_REGISTRATION_H
