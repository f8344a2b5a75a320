//===- assumed_truths.cpp - Checks that are read after the step -----------===//

#include "execution/assumed_truths.h"

#include "execution/recording.h"
#include "execution/step_executor.h"

using namespace torch_ltc;

namespace {

struct Assumptions {
  bool isOpen = false;
  at::Tensor lastAllTrue;
  std::vector<std::shared_ptr<AssumedTruth>> truths;
  /// Truths that were assumed and not compared with the computed bool so far.
  std::vector<std::weak_ptr<AssumedTruth>> unsettled;
};

thread_local Assumptions assumptions;
void (*failureHook)() = nullptr;

} // namespace

static HostDataPtr dataOf(const at::Tensor &tensor) {
  std::lock_guard<TraceLock> lock(traceLock);
  return tensorDataOf(tensor)->data();
}

void AssumedTruth::wait() const {
  if (HostDataPtr data = dataOf(flag); data && data->producer())
    data->producer()->waitFor(data->buffer().get());
}

void AssumedTruth::compute() const {
  StepExecutor::get().materialize(flag, "aten::_is_all_true");
}

std::optional<bool> AssumedTruth::value() const {
  HostDataPtr data = dataOf(flag);
  if (!data || !data->isReady())
    return std::nullopt;
  if (data->producer() && data->producer()->waitFor(data->buffer().get()))
    return true; // the check itself depends on what failed
  return *static_cast<const bool *>(data->buffer()->data());
}

void torch_ltc::beginAssuming() { assumptions.isOpen = !Recording::current(); }

std::vector<std::shared_ptr<AssumedTruth>> torch_ltc::endAssuming() {
  assumptions.isOpen = false;
  assumptions.lastAllTrue = at::Tensor();
  auto &unsettled = assumptions.unsettled;
  std::erase_if(unsettled, [](const auto &truth) { return truth.expired(); });
  unsettled.insert(unsettled.end(), assumptions.truths.begin(),
                   assumptions.truths.end());
  return std::exchange(assumptions.truths, {});
}

/// Calls the hook if one of the bools is known to be false.
static void raiseIfKnown() {
  bool hasFailed = false;
  std::erase_if(assumptions.unsettled, [&](const auto &weak) {
    std::shared_ptr<AssumedTruth> truth = weak.lock();
    if (!truth)
      return true;
    truth->wait();
    std::optional<bool> value = truth->value();
    hasFailed |= value && !*value;
    return value.has_value();
  });
  if (hasFailed)
    failureHook();
}

void torch_ltc::raiseFailedCheck() {
  for (const auto &weak : assumptions.unsettled)
    if (std::shared_ptr<AssumedTruth> truth = weak.lock())
      try {
        truth->compute();
      } catch (const std::exception &) { // it depends on what failed
      }
  raiseIfKnown();
}

void torch_ltc::computeForCaller(c10::ArrayRef<at::Tensor> tensors,
                                 const std::string &opName) {
  try {
    // A read computes the checks of its step, too.
    StepExecutor::get().materialize(
        tensors, opName, /*mayRunAlone=*/assumptions.unsettled.empty());
  } catch (const std::exception &) {
    raiseFailedCheck();
    throw;
  }
  raiseIfKnown();
}

void torch_ltc::onFailedAssumption(void (*hook)()) { failureHook = hook; }

void torch_ltc::noteAllTrue(const at::Tensor &result) {
  if (assumptions.isOpen)
    assumptions.lastAllTrue = result;
}

bool torch_ltc::assumeTrue(const at::Tensor &flag) {
  const at::Tensor &last = assumptions.lastAllTrue;
  if (!assumptions.isOpen || !last.defined() ||
      tensorDataOf(flag) != tensorDataOf(last))
    return false;
  assumptions.truths.push_back(
      std::make_shared<AssumedTruth>(std::move(assumptions.lastAllTrue)));
  return true;
}
