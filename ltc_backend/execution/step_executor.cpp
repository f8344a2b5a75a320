//===- step_executor.cpp - From pending graphs to results -----------------===//

#include "execution/step_executor.h"

#include "config/config.h"
#include "config/log.h"
#include "events/call_log.h"
#include "events/explanations.h"
#include "events/guards.h"
#include "events/metrics.h"
#include "events/step_log.h"
#include "execution/cheap_values.h"
#include "execution/effects_turn.h"
#include "execution/expected_trace.h"
#include "execution/program_choice.h"
#include "execution/recording.h"
#include "execution/step_observers.h"
#include "graph/effects.h"
#include "graph/tensor_names.h"
#include "graph/trace_cache.h"
#include "memory/running_step.h"

#include "source/source_location.h"

#include <ATen/Functions.h>
#include <ATen/record_function.h>
#include <torch/csrc/lazy/core/metrics.h>

#include <chrono>

using namespace torch_ltc;
using torch::lazy::Value;

namespace {

std::atomic<int64_t> stepCounter{0};
std::atomic<int64_t> foreignTensors{0};
thread_local int64_t tracedSinceStep = 0;
/// Number of reads since then that computed only a few cheap ops.
thread_local int64_t readsAlone = 0;
/// Maximum of `readsAlone`: a loop that ends no step must not trace on forever.
constexpr int64_t kMaxReadsAlone = 32;
/// The last implicit sync since the start of the step.
thread_local std::optional<CallLogRow> lastRead;

/// The thread's last step.
struct LastStep {
  CompletionPtr completion;
  std::weak_ptr<Program> program;
};
thread_local LastStep lastStep;

/// Called when the thread reads a value. If the last step computed the value,
/// marks the step's program, so that its next run expects a read: loops often
/// read a value after each step (`loss.item()`).
void noteReadAfterStep(const CompletionPtr &producer) {
  constexpr int64_t kFewOps = 8; // a copy of the value, a sum of losses
  if (producer && producer == lastStep.completion && tracedSinceStep <= kFewOps)
    if (ProgramPtr program = lastStep.program.lock())
      program->isReadAtOnce = true;
}

const char *triggerName(int trigger) {
  static const char *const names[] = {"mark_step", "sync", "cut"};
  return names[trigger];
}

/// The candidates whose values are pending, and these values.
struct Roots {
  std::vector<TensorDataPtr> tensors;
  std::vector<Value> values;
  std::vector<torch::lazy::Output> outputs;

  explicit Roots(std::vector<TensorDataPtr> candidates) {
    for (TensorDataPtr &tensor : candidates) {
      Value value = tensor->value();
      if (!value.node || asGraphNode(value.node.get())->isData())
        continue;
      outputs.emplace_back(value.node.get(), value.index);
      values.push_back(std::move(value));
      tensors.push_back(std::move(tensor));
    }
  }
};

/// Extends `candidates` (graph/effects.h), and, if there are effects, takes the
/// turn of the traces that contain the candidates. Returns the traces of the
/// effects.
LiveSets takeTurn(EffectsTurn &turn, std::vector<TensorDataPtr> &candidates) {
  for (;;) {
    LiveSets effects = addTracesOfEffects(candidates);
    if (effects.empty())
      return effects;
    LiveSets traces = effects;
    for (const TensorDataPtr &tensor : candidates)
      if (std::find(traces.begin(), traces.end(), tensor->traceSet()) ==
          traces.end())
        traces.push_back(tensor->traceSet());
    if (turn.take(traces))
      return effects;
    EffectsTurn::wait(traces);
  }
}

/// The chain of collectives whose worker runs a graph with these effects; 0
/// means the chain of the calling thread.
int64_t chainOf(const LiveSets &effects) {
  bool isOwn =
      effects.empty() || std::find(effects.begin(), effects.end(),
                                   LiveSet::ofThisThread()) != effects.end();
  return isOwn ? 0 : effects[0]->chain();
}

/// Whether there are more tensors to compute than when `roots` were collected.
/// While this thread doesn't hold the trace lock, the thread that traced the
/// effects may continue, and other threads may use their results; the new
/// values may depend on the effects' nodes, which must run only once.
bool hasGrown(const Roots &roots) {
  std::vector<TensorDataPtr> tensors = roots.tensors;
  addTracesOfEffects(tensors);
  Roots now(std::move(tensors));
  return now.outputs != roots.outputs;
}

/// The graph that computes `roots`. If `full`, ends the thread's trace.
class StepGraph {
public:
  StepGraph(c10::ArrayRef<torch::lazy::Output> roots, bool full) {
    if (!full) {
      built = buildGraph(roots);
      return;
    }
    TraceCache &cache = TraceCache::ofThisThread();
    known = cache.knownGraph(roots);
    if (!known && !roots.empty()) {
      built = buildGraph(roots);
      cache.remember(built, roots);
    }
    cache.endTrace();
    early = ExpectedTraces::ofThisThread().endTrace();
  }
  ~StepGraph() {
    if (known) // otherwise the cache would keep the step's data
      known->graph.parameters.clear();
  }
  StepGraph(const StepGraph &) = delete;
  StepGraph &operator=(const StepGraph &) = delete;
  Graph &get() { return known ? known->graph : built; }
  /// Returns the head start if its ops belong to this program and this graph,
  /// otherwise null. Releases the head start, which holds buffers of
  /// parameters.
  HeadStartPtr takeHeadStart(const Program &program) {
    HeadStartPtr taken = std::move(early);
    return taken && isRunOf(*taken, program, get()) ? taken : nullptr;
  }

private:
  std::shared_ptr<KnownGraph> known;
  HeadStartPtr early;
  Graph built;
};

/// Whether the value at `position` is the new value of a written tensor: the
/// result of an in-place op or, if the op was called on a view, the value of
/// the base that functionalization computes from this result.
bool isWritten(const Graph &graph, uint32_t position) {
  while (!graph.nodes[position]->isData()) {
    const auto &node = static_cast<const OpNode &>(*graph.nodes[position]);
    if (node.isInPlace())
      return true;
    const OpRecord &record = node.record();
    if (record.family != Family::data_movement)
      return false;
    size_t numOperands = node.operands().size();
    // slice_scatter(base, new value of the view)
    bool isScatter =
        record.strideRule == StrideRule::LikeSelf && numOperands == 2;
    if (!isScatter && numOperands != 1)
      return false;
    uint32_t first = graph.firstOperand[position];
    position = graph.operands[first + (isScatter ? 1 : 0)].position;
  }
  return false;
}

HostDataPtr makeOutput(const Program &program, size_t index, const Graph &graph,
                       const torch::lazy::Shape &shape, ScheduledStep &step) {
  const OutputPlan &plan = program.outputs[index];
  if (plan.place == OutputPlace::Forwarded)
    return graph.parameters[plan.parameter];
  BufferPtr buffer = plan.place == OutputPlace::Donated
                         ? graph.parameters[plan.parameter]->buffer()
                     : step.headStart ? step.headStart->outputs[index]
                                      : Buffer::deferred(byteSize(shape));
  const bool keepsOld = isWritten(graph, graph.results[index].position);
  if (!plan.updatedParameter)
    return HostData::create(
        shape, buffer, keepsOld ? step.updatesCompletion : step.completion);
  const HostData &old = *graph.parameters[*plan.updatedParameter];
  // If the step that should have computed the old value failed, there may be no
  // old value to keep.
  const CompletionPtr &producer = old.producer();
  bool hasFailed =
      producer && producer->isDone() && producer->waitFor(old.buffer().get());
  HostDataPtr data = HostData::create(
      shape, buffer,
      keepsOld && !hasFailed ? step.updatesCompletion : step.completion);
  data->setName(old.name());
  if (keepsOld)
    data->setSizeMarks(old.sizeMarks());
  return data;
}

/// Adds the buffers of the graph's parameters and results to the step, and
/// gives the results' data to the tensors. Returns the data.
std::vector<HostDataPtr> assignResults(const Roots &roots, const Graph &graph,
                                       const Program &program,
                                       ScheduledStep &step) {
  std::vector<HostDataPtr> results;
  for (size_t i = 0; i < graph.results.size(); ++i) {
    ResultRef ref = graph.results[i];
    const GraphNode *node = graph.nodes[ref.position];
    results.push_back(
        makeOutput(program, i, graph, node->shapes()[ref.index], step));
    if (!node->isData())
      results.back()->setLocation(
          static_cast<const OpNode *>(node)->location());
    step.outputs.push_back(results.back()->buffer());
  }
  for (const HostDataPtr &parameter : graph.parameters) {
    step.parameters.push_back(parameter->buffer());
    step.producers.push_back(parameter->producer());
  }
  for (size_t i = 0; i < roots.tensors.size(); ++i)
    roots.tensors[i]->setData(roots.values[i], results[graph.resultOfRoot[i]]);
  return results;
}

} // namespace

StepExecutor &StepExecutor::get() {
  static auto *instance = new StepExecutor;
  return *instance;
}

/// Whether options allow programs to overwrite parameters.
static bool mayProgramsDonate() {
  return config().donation.get() && !config().detect_nan.get() &&
         !config().lockstep.get();
}

void StepExecutor::run(std::vector<TensorDataPtr> candidates, Trigger trigger,
                       bool full, bool wait) {
  Stopwatch stopwatch;
  if (full)
    tracedSinceStep = readsAlone = 0;
  std::unique_lock<TraceLock> lock(traceLock);
  EffectsTurn turn;
  const LiveSets effects = takeTurn(turn, candidates);
  Roots roots(std::move(candidates));
  StepGraph stepGraph(roots.outputs, full);
  if (roots.values.empty())
    return;
  checkMayWait(); // must precede the assignment of results to tensors
  at::RecordFunction span(at::RecordScope::FUNCTION);
  if (span.isActive())
    span.before(std::string("torch_ltc::schedule for ") +
                triggerName(int(trigger)));

  Graph &graph = stepGraph.get();
  ChosenProgram chosen =
      chooseProgram(graph, roots.values,
                    full && trigger != Trigger::Cut && mayProgramsDonate());
  if (turn.isTaken() && hasGrown(roots)) {
    turn.end();
    return run(roots.tensors, trigger, /*full=*/false, wait);
  }

  ScheduledStep step;
  step.headStart = stepGraph.takeHeadStart(*chosen.program);
  std::vector<HostDataPtr> results =
      assignResults(roots, graph, *chosen.program, step);
  callObservers({graph, chosen, roots.tensors, results, step});
  step.scalars = std::move(graph.scalars);
  step.chain = chainOf(effects);
  step.isAwaited = wait || trigger == Trigger::Sync;
  CompletionPtr completion = step.completion;
  schedule(std::move(step), graph, chosen, trigger, full, stopwatch);
  for (const std::shared_ptr<LiveSet> &trace : effects)
    trace->noteEffectsScheduled();
  turn.end();
  lock.unlock();
  if (wait)
    if (const StepErrorPtr &error = completion->wait())
      error->raise();
}

void StepExecutor::schedule(ScheduledStep step, const Graph &graph,
                            const ChosenProgram &chosen, Trigger trigger,
                            bool full, const Stopwatch &stopwatch) {
  step.program = chosen.program;
  step.number = stepCounter.load();
  step.isAwaited =
      step.isAwaited || chosen.program->isReadAtOnce.exchange(false);
  lastStep = {step.completion, chosen.program};
  if (full && step.isAwaited && trigger != Trigger::Cut)
    ExpectedTraces::ofThisThread().expectAgain(graph, chosen.program,
                                               numThreadsOfSteps());
  recordTime(Timer::trace_to_schedule, stopwatch.seconds());
  logAndSchedule(std::move(step), chosen.origin, triggerName(int(trigger)),
                 stopwatch.seconds());
}

void StepExecutor::markStep(bool wait) {
  stepCounter.fetch_add(1);
  count(Counter::steps);
  // A read at the end of the trace isn't reported: the step would have ended
  // there anyway.
  if (std::optional<CallLogRow> read = std::exchange(lastRead, std::nullopt))
    if (tracedSinceStep > 0)
      explainSync(*read);
  run(LiveSet::ofThisThread()->pending(), Trigger::MarkStep, /*full=*/true,
      wait);
}

void torch_ltc::logAndSchedule(ScheduledStep step, std::string origin,
                               std::string trigger, double scheduleSeconds) {
  const Program &program = *step.program;
  StepEvent event;
  event.step = step.number;
  event.program = program.name;
  event.origin = std::move(origin);
  event.trigger = std::move(trigger);
  event.ops = int64_t(program.numOps);
  event.donated = int64_t(program.numDonated);
  event.time = std::chrono::duration<double>(
                   std::chrono::system_clock::now().time_since_epoch())
                   .count();
  event.liveTensors = numLiveTensors();
  event.allocatedBytes = memoryPool().values().allocated;
  event.scheduleSeconds = scheduleSeconds;
  step.event = addStepEvent(std::move(event));
  count(Counter::executions);
  count(Counter::donated_buffers, int64_t(program.numDonated));
  scheduleStep(std::move(step));
}

int64_t StepExecutor::noteReplayedStep() {
  count(Counter::steps);
  return stepCounter.fetch_add(1) + 1;
}

void StepExecutor::syncTensors(c10::ArrayRef<at::Tensor> tensors, bool wait) {
  std::vector<TensorDataPtr> wanted;
  {
    TensorAccess access;
    for (const at::Tensor &tensor : tensors)
      if (TensorDataPtr data = tensorDataOf(tensor))
        wanted.push_back(std::move(data));
  }
  run(wanted, Trigger::Sync, /*full=*/false, wait);
  if (wait)
    for (const TensorDataPtr &data : wanted)
      if (HostDataPtr host = data->data())
        host->wait();
}

/// Waits for a tensor's value. Throws the error of the step that computes it.
static void waitForValue(TensorData &tensor, const std::string &opName) {
  HostDataPtr data = tensor.data();
  TORCH_CHECK(data, "A tensor was overwritten while ", opName,
              " read it: another thread writes to it.");
  if (!data->producer())
    return;
  noteReadAfterStep(data->producer());
  if (!data->isReady())
    checkMayWait();
  const Buffer *buffer = data->buffer().get();
  if (const StepErrorPtr &error = data->producer()->waitFor(buffer))
    error->raise(" The value was read by " + opName +
                 messageSuffix(captureLocation()) + ".");
  // The value may be the old one, from before a failed step.
  if (StepErrorPtr error = data->producer()->oldValueError(buffer))
    error->raise(" It was detected when " + opName + " read a value" +
                 messageSuffix(captureLocation()) + ".");
}

int64_t StepExecutor::materialize(c10::ArrayRef<at::Tensor> tensors,
                                  const std::string &opName, bool mayRunAlone) {
  if (Recording *recording = Recording::current();
      recording && !tensors.empty())
    recording->noteRead(opName);
  std::vector<TensorDataPtr> wanted;
  bool isPending = false;
  for (const at::Tensor &tensor : tensors) {
    wanted.push_back(tensorDataOf(tensor));
    isPending |= wanted.back()->isPending();
  }
  Stopwatch stopwatch;
  CallLogRow row;
  at::RecordFunction span(at::RecordScope::FUNCTION);
  if (isPending) {
    if (isForbidden(Forbidden::sync))
      checkAllowed(Forbidden::sync,
                   opName +
                       " needs the value of a tensor that isn't computed "
                       "yet, " +
                       std::to_string(tracedSinceStep) +
                       " ops after the last step");
    if (span.isActive())
      span.before("torch_ltc::sync for " + opName);
    std::optional<int64_t> numAlone = numCheapOps(wanted);
    const bool isAlone = mayRunAlone && numAlone &&
                         *numAlone < tracedSinceStep &&
                         readsAlone < kMaxReadsAlone;
    readsAlone += isAlone;
    row.ops = isAlone ? *numAlone : tracedSinceStep;
    std::vector<TensorDataPtr> all;
    if (!isAlone)
      all = LiveSet::ofThisThread()->pending();
    // Adds tensors of other threads, which aren't in this thread's set.
    for (const TensorDataPtr &data : wanted)
      if (std::find(all.begin(), all.end(), data) == all.end())
        all.push_back(data);
    run(std::move(all), Trigger::Sync, /*full=*/!isAlone, /*wait=*/false);
  }
  for (const TensorDataPtr &data : wanted)
    waitForValue(*data, opName);
  if (!isPending)
    return 0;
  row.op = opName;
  row.location = shortText(captureLocation());
  row.calls = 1;
  row.seconds = stopwatch.seconds();
  syncLog().add(row);
  lastRead = std::move(row);
  count(Counter::implicit_syncs);
  recordTime(Timer::sync, lastRead->seconds);
  return 1;
}

void StepExecutor::noteTracedOp() {
  int64_t limit = config().max_trace_ops.get();
  if (++tracedSinceStep <= limit || limit == 0)
    return;
  static std::atomic<bool> wasSaid{false};
  if (!wasSaid.exchange(true))
    log(LogLevel::Warning,
        "The graph was cut after " + std::to_string(limit) +
            " ops without a step" + messageSuffix(captureLocation()) +
            "; call torch_ltc.mark_step() in the loop, or set option "
            "max_trace_ops. This is logged once.");
  count(Counter::graph_cuts);
  run(LiveSet::ofThisThread()->pending(), Trigger::Cut, /*full=*/true,
      /*wait=*/false);
}

void StepExecutor::waitForAll() {
  if (StepErrorPtr error = waitForScheduledSteps())
    error->raise();
}

int64_t StepExecutor::numTracedOps() const { return tracedSinceStep; }
int64_t StepExecutor::stepNumber() const { return stepCounter.load(); }

//===----------------------------------------------------------------------===//
// Hooks of the base class
//===----------------------------------------------------------------------===//

// Only called for tensors that the base class's code creates: `TensorData`
// keeps our own tensors in a separate set.
void StepExecutor::RegisterTensor(
    std::shared_ptr<torch::lazy::LazyTensor::Data> data) {
  foreignTensors.fetch_add(1);
  LazyGraphExecutor::RegisterTensor(std::move(data));
}

void StepExecutor::UnregisterTensor(torch::lazy::LazyTensor::Data *data) {
  // Removing a tensor that isn't in the set is harmless, but costs a lock and a
  // lookup.
  if (foreignTensors.load(std::memory_order_relaxed))
    LazyGraphExecutor::UnregisterTensor(data);
}

void StepExecutor::SyncLiveTensorsGraph(const torch::lazy::BackendDevice *,
                                        c10::ArrayRef<std::string>, bool wait) {
  markStep(wait);
}

void StepExecutor::MarkStep(const torch::lazy::BackendDevice &) {}

StepExecutor::PostOrderData
StepExecutor::RunPostOrder(const std::vector<Value> &values,
                           SyncTensorCollection *collection) {
  PostOrderData data = LazyGraphExecutor::RunPostOrder(values, collection);
  std::vector<torch::lazy::Output> outputs;
  for (const Value &value : values)
    outputs.emplace_back(value.node.get(), value.index);
  Graph graph = buildGraph(outputs);
  // Sets the parameters, in the order of our own graph walk, which the lowering
  // context repeats; scalars follow the tensors.
  data.parameters_data.assign(graph.parameters.begin(), graph.parameters.end());
  for (const DynamicScalar &scalar : graph.scalars)
    data.parameters_data.push_back(
        HostData::ofScalar(scalar.isFloat ? at::Scalar(scalar.asFloat)
                                          : at::Scalar(scalar.asInt)));
  data.parameter_sequence.clear();
  for (size_t i = 0; i < data.parameters_data.size(); ++i)
    data.parameter_sequence.push_back(i);
  collection->hash = torch::lazy::HashCombine(
      collection->hash, torch::lazy::hash_t(graph.hash.high, graph.hash.low));
  return data;
}
