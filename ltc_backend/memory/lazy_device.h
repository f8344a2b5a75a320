//===- lazy_device.h - The one device of this backend -----------*- C++ -*-===//

#ifndef TORCH_LTC_MEMORY_LAZY_DEVICE_H
#define TORCH_LTC_MEMORY_LAZY_DEVICE_H

#include <torch/csrc/lazy/backend/backend_device.h>

namespace torch_ltc {

/// A device type with a distinct name: torch 2.13 treats a device with the name
/// "Unknown0" (the base class's default) as "no device" and doesn't take the
/// device's lock.
struct LazyDeviceType final : torch::lazy::BackendDeviceType {
  LazyDeviceType() : BackendDeviceType(int8_t(at::kCPU)) {}
  std::string toString() const override { return "LazyHost"; }
};

/// The device "lazy:0".
const torch::lazy::BackendDevice &lazyDevice();
/// Throws c10::Error for a lazy device that doesn't exist. Each kernel with a
/// device argument must call it.
void checkLazyDevice(c10::Device device);

/// Lazy tensors use this device's autocast, because torch 2.13 has no autocast
/// for lazy tensors. HPU's autocast has no kernels, and its default dtype is
/// bfloat16.
inline constexpr c10::DeviceType autocastDevice = c10::DeviceType::HPU;
inline constexpr c10::DispatchKey autocastKey = c10::DispatchKey::AutocastHPU;

/// A dispatch key of all lazy tensors that precedes all their other keys; see
/// eager_semantics/locked_ops.cpp.
inline constexpr c10::DispatchKey lockKey =
    c10::DispatchKey::TESTING_ONLY_GenericWrapper;

} // namespace torch_ltc

#endif // TORCH_LTC_MEMORY_LAZY_DEVICE_H
