//===- first_tensor.cpp - Hooks before the first lazy tensor --------------===//

#include "graph/first_tensor.h"

#include <atomic>

using namespace torch_ltc;

namespace {

void (*firstTensorHook)() = nullptr;
std::atomic<void (*)()> earlierHook{nullptr};

bool callFirstTensorHook() {
  if (firstTensorHook)
    firstTensorHook();
  return true;
}

} // namespace

void torch_ltc::onFirstTensor(void (*hook)()) { firstTensorHook = hook; }

void torch_ltc::beforeFirstTensor(void (*hook)()) { earlierHook = hook; }

void torch_ltc::prepareFirstTensor() {
  if (auto hook = earlierHook.load(std::memory_order_acquire)) [[unlikely]] {
    hook();
    earlierHook.store(nullptr, std::memory_order_release);
  }
  [[maybe_unused]] static const bool isFirst = callFirstTensorHook();
}
