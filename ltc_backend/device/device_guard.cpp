//===- device_guard.cpp - The device and stream of a thread ---------------===//
//
// torch's guard (2.13) returns "lazy" for tensors on "lazy:0", so that
// `x.to("lazy")` would copy a tensor that is already there, and an in-place
// write to the result would not reach `x`. Our guard returns the full name of
// the only device. There is only one stream, because steps run in order.
//
//===----------------------------------------------------------------------===//

#include "execution/step_executor.h"

#include <c10/core/impl/DeviceGuardImplInterface.h>

#include <chrono>

using torch_ltc::StepExecutor;

namespace {

using Time = std::chrono::steady_clock::time_point;

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
  c10::Stream getNewStream(c10::Device device, int) const override {
    return getStream(device);
  }
  c10::Stream getStreamFromGlobalPool(c10::Device device, bool) const override {
    return getStream(device);
  }
  // Events order the work of several streams, and there is only one. So an
  // event only contains a time, if it was created to measure times: the time at
  // which the preceding steps have run.
  void record(void **event, const c10::Stream &stream, c10::DeviceIndex,
              c10::EventFlag flag) const override {
    if (flag != c10::EventFlag::BACKEND_DEFAULT)
      return;
    synchronizeStream(stream);
    if (!*event)
      *event = new Time;
    *static_cast<Time *>(*event) = std::chrono::steady_clock::now();
  }
  void destroyEvent(void *event, c10::DeviceIndex) const noexcept override {
    delete static_cast<Time *>(event);
  }
  double elapsedTime(void *begin, void *end, c10::DeviceIndex) const override {
    TORCH_CHECK(begin && end, "Both events must be created with argument "
                              "'enable_timing=True'.");
    return std::chrono::duration<double, std::milli>(
               *static_cast<Time *>(end) - *static_cast<Time *>(begin))
        .count();
  }
  void block(void *, const c10::Stream &) const override {}
  bool queryEvent(void *) const override {
    return queryStream(getStream(getDevice()));
  }
  void synchronizeEvent(void *) const override {
    synchronizeStream(getStream(getDevice()));
  }
  /// Ends the step and waits for it: a caller that polls until this returns
  /// true would otherwise wait for a step that nobody ends.
  bool queryStream(const c10::Stream &stream) const override {
    synchronizeStream(stream);
    return true;
  }
  void synchronizeStream(const c10::Stream &) const override {
    StepExecutor::get().markStep(/*wait=*/true);
    StepExecutor::get().waitForAll();
  }
  void synchronizeDevice(c10::DeviceIndex) const override {
    synchronizeStream(getStream(getDevice()));
  }
  c10::DeviceIndex deviceCount() const noexcept override { return 1; }
};

C10_REGISTER_GUARD_IMPL(Lazy, LazyGuard)

} // namespace
