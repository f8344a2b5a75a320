//===- traced_collective.cpp - Collectives in the trace -------------------===//

#include "distributed/traced_collective.h"

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

#include <memory>
#include <set>
#include <thread>
#include <utility>

using namespace torch_ltc;
using at::Tensor;
using c10::IValue;

namespace {

/// The chain of the collectives that one thread traces (collective_ops.h): a
/// tensor whose value each collective replaces. Guarded by the trace lock.
class Chain {
public:
  Chain(int64_t chain, std::shared_ptr<LiveSet> owner)
      : chain(chain), owner(std::move(owner)) {}

  /// Gives the chain of an ended thread to another thread.
  void giveTo(const std::shared_ptr<LiveSet> &thread) {
    owner = thread;
    tensor = Tensor();
    groups.clear();
  }
  bool isOf(const std::shared_ptr<LiveSet> &thread) const {
    return owner == thread;
  }
  bool isUnused() const {
    return owner->isOfEndedThread() && (!tensor.defined() || isDone());
  }
  bool isPending() const {
    return tensor.defined() && tensorDataOf(tensor)->isPending();
  }

  /// Returns the tensor. If the chain has failed, raises its error once; after
  /// that, begins again.
  const Tensor &current() {
    raiseFailure();
    if (tensor.defined() && !hasFailed())
      return tensor;
    number = lastCollective(chain);
    tensor = makeTensor(HostData::takeOver(at::full({1}, number, at::kLong)));
    owner->setEffects(chain, tensorDataOf(tensor));
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

  void noteGroup(int64_t group) { groups.insert(group); }
  bool usesGroup(int64_t group) const { return groups.contains(group); }

  /// Runs the traced ops up to the last collective, and waits for them.
  void run(const std::string &reader) {
    if (!tensor.defined() || hasFailed())
      return;
    if (isOf(LiveSet::ofThisThread()))
      // Reads a copy: other threads may advance `tensor` while this thread
      // waits.
      StepExecutor::get().materialize(withValueOf(tensor), reader);
    else if (!isDone())
      cut(reader, /*wait=*/true);
  }

  /// Runs the traced ops if the thread has traced none since the last call.
  void runIfPaused(std::chrono::milliseconds pause) {
    uint64_t numTraced = owner->numTraced();
    bool hasPaused = numTraced == std::exchange(numTracedBefore, numTraced);
    // A recording needs its step as one program (capture/captured_step.h).
    if (hasPaused && isPending() && !EffectsTurn::isTakenByOther({owner}) &&
        !isRecorded)
      cut("a pause of " + std::to_string(pause.count()) +
              " ms after a collective that other ranks may be waiting for",
          /*wait=*/false);
  }

private:
  /// Runs the thread's trace on behalf of another thread.
  void cut(const std::string &reason, bool wait) {
    CallLogRow row;
    row.op = reason;
    row.location = shortText(placeOfCollective(number));
    row.calls = 1;
    // Compute the tensor itself, not a copy: if the trace's thread schedules
    // the tensor at the same time, the copy would stay pending, and computing
    // it would run the collectives again.
    const bool isCut = isPending();
    StepExecutor::get().syncTensors(tensor, wait);
    if (!isCut) // the ops are running
      return;
    syncLog().add(row);
    count(Counter::graph_cuts);
  }

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

  bool isDone() const {
    HostDataPtr data = tensorDataOf(tensor)->data();
    return data && data->isReady();
  }

  /// Whether the chain has failed. It then begins again after the collectives
  /// that have run.
  bool hasFailed() const {
    HostDataPtr data = tensorDataOf(tensor)->data();
    return data && data->producer() && data->producer()->isDone() &&
           !data->producer()->hasSucceeded();
  }

  const int64_t chain;
  std::shared_ptr<LiveSet> owner;
  Tensor tensor;
  int64_t number = 0;      // value of `tensor` after all traced ops
  bool isRecorded = false; // whether the last collective is part of a recording
  uint64_t numTracedBefore = 0;
  std::set<int64_t> groups; // numbers of groups with a traced collective
};

/// The chains of all threads. Guarded by the trace lock.
class Chains {
public:
  Chain &ofThisThread() {
    const std::shared_ptr<LiveSet> &thread = LiveSet::ofThisThread();
    if (Chain *own = find(thread))
      return *own;
    for (const auto &chain : all)
      if (chain->isUnused()) {
        chain->giveTo(thread);
        return *chain;
      }
    all.push_back(std::make_unique<Chain>(int64_t(all.size()) + 1, thread));
    return *all.back();
  }

  /// Runs the calling thread's traced collectives, or those of all threads if
  /// it has traced none.
  void run(const std::string &reader) {
    if (Chain *own = find(LiveSet::ofThisThread()))
      own->run(reader);
    else
      runAll(reader);
  }

  void runAll(const std::string &reader) {
    forEach([&](Chain &chain) { chain.run(reader); });
  }

  /// Before a collective of `group` is traced: runs the collectives of this
  /// group that other threads have traced.
  void runOthers(int64_t group, const std::string &reader) {
    const std::shared_ptr<LiveSet> &thread = LiveSet::ofThisThread();
    forEach([&](Chain &chain) {
      if (!chain.isOf(thread) && chain.usesGroup(group))
        chain.run(reader);
    });
  }

  /// Before an untraced collective of `group`: runs the collectives that the
  /// calling thread has traced, and those of this group.
  void runFor(int64_t group, const std::string &reader) {
    const std::shared_ptr<LiveSet> &thread = LiveSet::ofThisThread();
    forEach([&](Chain &chain) {
      if (chain.isOf(thread) || chain.usesGroup(group))
        chain.run(reader);
    });
  }

  /// Returns whether collectives may still be pending.
  bool runPaused(std::chrono::milliseconds pause) {
    bool arePending = false;
    forEach([&](Chain &chain) {
      chain.runIfPaused(pause);
      arePending = arePending || chain.isPending();
    });
    return arePending;
  }

private:
  Chain *find(const std::shared_ptr<LiveSet> &thread) {
    for (const auto &chain : all)
      if (chain->isOf(thread))
        return chain.get();
    return nullptr;
  }

  /// Another thread may add a chain while `visit` waits.
  template <typename Visit> void forEach(Visit visit) {
    for (size_t i = 0; i < all.size(); ++i)
      visit(*all[i]);
  }

  std::vector<std::unique_ptr<Chain>> all;
};

Chains &chains() {
  static auto *instance = new Chains;
  return *instance;
}

std::vector<Tensor> trace(const std::string &name,
                          c10::ArrayRef<IValue> arguments) {
  BelowFunctionalization below;
  const OpRecord &record = getOpRecord(name);
  const char *reason = reasonForFallback(record.name, record.emitName);
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
  chains().runOthers(number, "a collective of another thread");
  Chain &chain = chains().ofThisThread();
  chain.noteGroup(number);
  Recording *recording = Recording::current();
  const Tensor &before = chain.current();
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
  chains().ofThisThread().advance(results[0]);
  return results[1];
}

StartedCollective torch_ltc::traceStart(const Collective &collective) {
  std::unique_lock<TraceLock> lock(traceLock);
  std::vector<Tensor> results =
      trace("torch_ltc::collective_start", argumentsOf(collective));
  chains().ofThisThread().advance(results[0]);
  return {results[0], collective.size, collective.input.scalar_type()};
}

Tensor torch_ltc::traceWait(const StartedCollective &collective) {
  std::unique_lock<TraceLock> lock(traceLock);
  Tensor result = trace("torch_ltc::collective_wait",
                        {chains().ofThisThread().current(), collective.started,
                         collective.size, int64_t(collective.dtype)})[0];
  if (TensorDataPtr data = tensorDataOf(result); data->isPending())
    data->traceSet()->noteWait(data->value().node);
  return result;
}

Tensor torch_ltc::scheduledOrder() {
  Tensor tensor = chains().ofThisThread().current();
  if (tensorDataOf(tensor)->isPending())
    StepExecutor::get().syncTensors(tensor, /*wait=*/false);
  return tensor;
}

std::vector<LocationId> torch_ltc::lastPlaces(size_t count) {
  return chains().ofThisThread().places(count);
}

void torch_ltc::noteReplayedCollectives(c10::ArrayRef<LocationId> places) {
  for (LocationId place : places)
    chains().ofThisThread().notePlace(place);
}

void torch_ltc::runTracedCollectives(const std::string &reader) {
  std::unique_lock<TraceLock> lock(traceLock);
  chains().run(reader);
}

void torch_ltc::waitForTracedCollectives(std::chrono::milliseconds timeout) {
  constexpr std::chrono::milliseconds kInterval{1};
  const auto end = std::chrono::steady_clock::now() + timeout;
  HostDataPtr last;
  {
    std::unique_lock<TraceLock> lock(traceLock);
    last = tensorDataOf(scheduledOrder())->data();
  }
  while (!last->isReady()) {
    TORCH_CHECK(std::chrono::steady_clock::now() < end,
                "Work.wait: the collective, or one before it, hasn't finished "
                "after ",
                timeout.count(), " ms", messageSuffix(captureLocation()), ".");
    BlockingScope blocking;
    std::this_thread::sleep_for(kInterval);
    checkSignals();
  }
  last->wait();
}

void torch_ltc::runAllTracedCollectives(const std::string &reader) {
  std::unique_lock<TraceLock> lock(traceLock);
  chains().runAll(reader);
}

void torch_ltc::runTracedCollectives(const ProcessGroupPtr &group,
                                     const std::string &reader) {
  std::unique_lock<TraceLock> lock(traceLock);
  chains().runFor(groupNumber(group), reader);
}

bool torch_ltc::runPausedCollectives(std::chrono::milliseconds pause) {
  std::unique_lock<TraceLock> lock(traceLock);
  try {
    return chains().runPaused(pause);
  } catch (const std::exception &error) {
    // The ops stay pending, so that the thread that traced them sees the error.
    log(LogLevel::Info, "A trace with collectives paused, but couldn't run: " +
                            std::string(error.what()));
    return false;
  }
}
