//===- traced_collective.cpp - Collectives in the trace -------------------===//

#include "distributed/traced_collective.h"

#include "compilation/external_backend.h"
#include "config/log.h"
#include "distributed/collective_faults.h"
#include "distributed/collective_ops.h"
#include "distributed/collective_watchdog.h"
#include "events/call_log.h"
#include "events/metrics.h"
#include "execution/effects_turn.h"
#include "execution/recording.h"
#include "execution/step_executor.h"
#include "fallback/eager_fallback.h"
#include "graph/live_tensors.h"
#include "source/traced_place.h"
#include "tracing/trace.h"
#include "tracing/wrapped_value.h"

#include <ATen/Functions.h>

#include <set>

using namespace torch_ltc;
using at::Tensor;
using c10::IValue;

namespace {

/// The end of the chain of collectives (collective_ops.h): one tensor, whose
/// value each collective replaces. Guarded by the trace lock.
class Order {
public:
  /// Returns the tensor. If another thread traced the last collective, waits
  /// for it and begins a new chain. If the chain has failed, raises its error
  /// once; after that, begins a new chain.
  const Tensor &current() {
    const auto &set = LiveSet::ofThisThread();
    raiseFailure();
    if (tensor.defined() && owner == set && !hasFailed())
      return tensor;
    run("a collective of another thread");
    number = lastCollective();
    tensor = makeTensor(HostData::takeOver(at::full({1}, number, at::kLong)));
    owner = set;
    setEffects(tensorDataOf(tensor));
    return tensor;
  }

  /// Python lines of the last `count` collectives.
  std::vector<LocationId> places(size_t count) const {
    std::vector<LocationId> places;
    for (size_t i = count; i-- > 0;)
      places.push_back(placeOfCollective(number - int64_t(i)));
    return places;
  }

  void notePlace(LocationId place) { notePlaceOfCollective(++number, place); }

  void advance(const Tensor &next) {
    notePlace(tracedPlace().location);
    tensorDataOf(tensor)->setValue(tensorDataOf(next)->value());
    isRecorded = Recording::current();
    watchTracedCollectives();
  }

  /// To be called before `reader`, an untraced collective of group `number`.
  /// Runs the traced ops if this thread traced them or if the group has a
  /// traced collective.
  void runFor(int64_t number, const std::string &reader) {
    if (owner == LiveSet::ofThisThread() || groups.contains(number))
      run(reader);
  }

  void note(int64_t number) { groups.insert(number); }

  void run(const std::string &reader) {
    if (!tensor.defined() || hasFailed())
      return;
    // Reads a copy: other threads may advance `tensor` while this thread waits.
    StepExecutor::get().materialize(withValueOf(tensor), reader);
  }

  void runPaused(std::chrono::milliseconds pause) {
    // A recording needs its step as one program (capture/captured_step.h).
    if (!tensor.defined() || !tensorDataOf(tensor)->isPending() ||
        EffectsTurn::isTakenByOther() || isRecorded)
      return;
    CallLogRow row;
    row.op = "a pause of " + std::to_string(pause.count()) +
             " ms after a collective that other ranks may be waiting for";
    row.location = shortText(placeOfCollective(number));
    row.calls = 1;
    // Not a copy: if the trace's thread schedules it at the same time, a copy
    // would still be pending and run the collectives again.
    StepExecutor::get().syncTensors(tensor, /*wait=*/false);
    syncLog().add(row);
    count(Counter::graph_cuts);
  }

private:
  /// Raises the error of a failed collective: a loop that reads nothing would
  /// otherwise continue after it.
  void raiseFailure() const {
    if (!tensor.defined() || !hasFailed())
      return;
    const StepErrorPtr &error =
        tensorDataOf(tensor)->data()->producer()->wait();
    if (!error->wasRaised())
      error->raise(" It was noticed at the next collective" +
                   messageSuffix(captureLocation()) + ".");
  }

  /// Whether the chain has failed. A new chain then begins after the
  /// collectives that have run.
  bool hasFailed() const {
    HostDataPtr data = tensorDataOf(tensor)->data();
    return data && data->producer() && data->producer()->isDone() &&
           !data->producer()->hasSucceeded();
  }

  Tensor tensor;
  std::shared_ptr<LiveSet> owner;
  int64_t number = 0;      // value of `tensor` after all traced ops
  bool isRecorded = false; // whether the last collective is part of a recording
  std::set<int64_t> groups; // numbers of groups with a traced collective
};

Order &order() {
  static auto *instance = new Order;
  return *instance;
}

std::vector<Tensor> trace(const std::string &name,
                          c10::ArrayRef<IValue> arguments) {
  BelowFunctionalization below;
  const OpRecord &record = getOpRecord(name);
  const char *reason = isFallbackForced(record.name) ? "forced"
                       : isRefusedByBackend(record.emitName)
                           ? "not supported by the selected backend"
                           : nullptr;
  if (!reason)
    return traceOp(record, arguments);
  torch::jit::Stack stack(arguments.begin(), arguments.end());
  runFallback(*record.handle, stack, reason);
  std::vector<Tensor> results;
  for (const IValue &value : stack)
    results.push_back(value.toTensor());
  return results;
}

std::vector<IValue> argumentsOf(const Collective &collective) {
  int64_t number = groupNumber(collective.group);
  order().note(number);
  Recording *recording = Recording::current();
  const Tensor &before = order().current();
  if (recording)
    recording->noteOrder(tensorDataOf(before)->data());
  return {before, valueOf(collective.input), collective.kind,
          number, collective.numbers,        collective.size};
}

} // namespace

Tensor torch_ltc::traceCollective(const Collective &collective) {
  std::unique_lock<TraceLock> lock(traceLock);
  std::vector<Tensor> results =
      trace("torch_ltc::collective", argumentsOf(collective));
  order().advance(results[0]);
  return results[1];
}

StartedCollective torch_ltc::traceStart(const Collective &collective) {
  std::unique_lock<TraceLock> lock(traceLock);
  std::vector<Tensor> results =
      trace("torch_ltc::collective_start", argumentsOf(collective));
  order().advance(results[0]);
  return {results[0], collective.size, collective.input.scalar_type()};
}

Tensor torch_ltc::traceWait(const StartedCollective &collective) {
  std::unique_lock<TraceLock> lock(traceLock);
  Tensor result = trace("torch_ltc::collective_wait",
                        {order().current(), collective.started, collective.size,
                         int64_t(collective.dtype)})[0];
  if (TensorDataPtr data = tensorDataOf(result); data->isPending())
    noteWait(data->value().node);
  return result;
}

Tensor torch_ltc::scheduledOrder() {
  Tensor tensor = order().current();
  if (tensorDataOf(tensor)->isPending())
    StepExecutor::get().syncTensors(tensor, /*wait=*/false);
  return tensor;
}

std::vector<LocationId> torch_ltc::lastPlaces(size_t count) {
  return order().places(count);
}

void torch_ltc::noteReplayedCollectives(c10::ArrayRef<LocationId> places) {
  for (LocationId place : places)
    order().notePlace(place);
}

void torch_ltc::runTracedCollectives(const std::string &reader) {
  std::unique_lock<TraceLock> lock(traceLock);
  order().run(reader);
}

void torch_ltc::runTracedCollectives(const ProcessGroupPtr &group,
                                     const std::string &reader) {
  std::unique_lock<TraceLock> lock(traceLock);
  order().runFor(groupNumber(group), reader);
}

void torch_ltc::runPausedCollectives(std::chrono::milliseconds pause) {
  std::unique_lock<TraceLock> lock(traceLock);
  try {
    order().runPaused(pause);
  } catch (const std::exception &error) {
    // The ops stay pending, so that the thread that traced them sees the error.
    log(LogLevel::Info, "A trace with collectives paused, but couldn't run: " +
                            std::string(error.what()));
  }
}
