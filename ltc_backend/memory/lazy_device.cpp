//===- lazy_device.cpp - The one device of this backend -------------------===//

#include "memory/lazy_device.h"

using namespace torch_ltc;

const torch::lazy::BackendDevice &torch_ltc::lazyDevice() {
  static const auto *device = new torch::lazy::BackendDevice(
      std::make_shared<LazyDeviceType>(), /*ordinal=*/0);
  return *device;
}
