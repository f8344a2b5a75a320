//===- device_guard.cpp - The device of a thread --------------------------===//
//
// torch's guard (2.13) says "lazy" where tensors are on "lazy:0", so that
// `x.to("lazy")` would copy what is there already, and an in-place write to the
// result would miss `x`. There is one device; ours names it.
//
//===----------------------------------------------------------------------===//

#include <c10/core/impl/DeviceGuardImplInterface.h>

namespace {

struct LazyGuard final : c10::impl::DeviceGuardImplInterface {
  c10::DeviceType type() const override { return c10::DeviceType::Lazy; }
  c10::Device getDevice() const override {
    return {c10::DeviceType::Lazy, c10::DeviceIndex(0)};
  }
  c10::Device exchangeDevice(c10::Device) const override { return getDevice(); }
  void setDevice(c10::Device) const override {}
  void uncheckedSetDevice(c10::Device) const noexcept override {}
  c10::Stream getStream(c10::Device device) const override {
    return c10::Stream(c10::Stream::DEFAULT, device);
  }
  c10::Stream exchangeStream(c10::Stream stream) const override {
    return getStream(stream.device());
  }
  c10::DeviceIndex deviceCount() const noexcept override { return 1; }
};

C10_REGISTER_GUARD_IMPL(Lazy, LazyGuard)

} // namespace
