//===- assumed_truths.cpp - Checks that are read after the step -----------===//

#include "tracing/assumed_truths.h"

#include "execution/recording.h"

using namespace torch_ltc;

namespace {

struct Assumptions {
  bool isOpen = false;
  TensorDataPtr lastAllTrue;
  std::vector<std::shared_ptr<AssumedTruth>> truths;
};

thread_local Assumptions assumptions;

} // namespace

std::optional<bool> AssumedTruth::value() const {
  HostDataPtr data;
  {
    std::lock_guard<TraceLock> lock(traceLock);
    data = flag->data();
  }
  if (!data || !data->isReady())
    return std::nullopt;
  if (data->producer() && !data->producer()->hasSucceeded())
    return true;
  return *static_cast<const bool *>(data->buffer()->data());
}

void torch_ltc::beginAssuming() { assumptions.isOpen = !Recording::current(); }

std::vector<std::shared_ptr<AssumedTruth>> torch_ltc::endAssuming() {
  assumptions.isOpen = false;
  assumptions.lastAllTrue = nullptr;
  return std::exchange(assumptions.truths, {});
}

void torch_ltc::noteAllTrue(const at::Tensor &result) {
  if (assumptions.isOpen)
    assumptions.lastAllTrue = tensorDataOf(result);
}

bool torch_ltc::assumeTrue(const at::Tensor &flag) {
  if (!assumptions.isOpen || !assumptions.lastAllTrue ||
      tensorDataOf(flag) != assumptions.lastAllTrue)
    return false;
  assumptions.truths.push_back(
      std::make_shared<AssumedTruth>(std::move(assumptions.lastAllTrue)));
  return true;
}
