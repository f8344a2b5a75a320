//===- lazy_device.cpp - The one device of this backend -------------------===//

#include "memory/lazy_device.h"

using namespace torch_ltc;

const torch::lazy::BackendDevice &torch_ltc::lazyDevice() {
  static const auto *device = new torch::lazy::BackendDevice(
      std::make_shared<LazyDeviceType>(), /*ordinal=*/0);
  return *device;
}

void torch_ltc::checkLazyDevice(c10::Device device) {
  TORCH_CHECK(!device.is_lazy() || device.index() <= 0, "Device '", device,
              "' doesn't exist: there is one lazy device, 'lazy:0'.");
}
