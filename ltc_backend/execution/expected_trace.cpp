//===- expected_trace.cpp - Traces that will probably repeat --------------===//

#include "execution/expected_trace.h"

#include "compilation/idle_processor.h"
#include "config/config.h"
#include "execution/recording.h"
#include "execution/step_queue.h"
#include "memory/running_step.h"

#include <ATen/Parallel.h>
#include <ATen/record_function.h>

#include <unordered_map>

using namespace torch_ltc;

namespace {

/// Number of confirmed ops after which the worker is woken to run them. Waking
/// it takes as long as tracing a few ops.
constexpr size_t kOpsInRequest = 12;
/// Minimum time, in seconds, of a run that is worth a head start.
constexpr double kMinSeconds = 2e-4;
constexpr int kMaxMisses = 4;
constexpr size_t kMaxTraces = 64;
constexpr uint32_t kNoPosition = UINT32_MAX;

} // namespace

struct ExpectedTraces::Trace {
  struct Op {
    const GraphNode *node;
    /// The op's position in the graph; kNoPosition if the op isn't needed or
    /// may not run early.
    uint32_t position = kNoPosition;
    uint32_t firstScalar = 0;
    std::vector<DataUse> data = {};
  };

  std::shared_ptr<KnownGraph> known;
  std::weak_ptr<InterpretedProgram> program;
  std::vector<Op> ops; // in the order of the trace
  uint64_t generation;
  int numThreads;
  int numMisses = 0; // consecutive traces that differed

  /// Whether the ops and the program still exist.
  bool mayRepeat() const {
    return !program.expired() &&
           generation == TraceCache::ofThisThread().generation();
  }
};

ExpectedTraces &ExpectedTraces::ofThisThread() {
  thread_local ExpectedTraces traces;
  return traces;
}

void ExpectedTraces::noteReused(const OpNode &op) {
  if (current)
    confirm(op);
  else if (ops.empty() && areReused)
    begin(op);
  ops.push_back(&op);
}

void ExpectedTraces::noteNew() {
  areReused = false;
  abandon();
}

void ExpectedTraces::begin(const OpNode &op) {
  auto found = traces.find({&op, lastGraph.get()});
  if (found == traces.end())
    return;
  const Trace &trace = *found->second;
  const std::string mode = config().head_start.get();
  if (!trace.mayRepeat()) {
    traces.erase(found);
    return;
  }
  if (trace.numMisses >= kMaxMisses || mode == "off" || isWorkerMissing ||
      isRunningStep || !config().async_execution.get() || at::hasCallbacks() ||
      Recording::current() ||
      (mode != "on" && !hasProcessorsFor(trace.numThreads + 1)))
    return;
  std::shared_ptr<InterpretedProgram> program = trace.program.lock();
  if (!program) // another thread has just dropped it
    return;
  current = found->second;
  headStart = program->beginHeadStart();
  headStart->program = std::move(program);
  numConfirmed = numRequested = 0;
  confirm(op);
}

void ExpectedTraces::confirm(const OpNode &op) {
  if (numConfirmed == current->ops.size() ||
      current->ops[numConfirmed].node != &op)
    return abandon();
  const Trace::Op &expected = current->ops[numConfirmed++];
  if (expected.position == kNoPosition)
    return;
  std::copy(op.scalars().begin(), op.scalars().end(),
            headStart->scalars.begin() + expected.firstScalar);
  for (const DataUse &use : expected.data) {
    const GraphNode *node = asGraphNode(op.operandNode(use.operand).get());
    if (!node->isData())
      return abandon();
    const HostDataPtr &data = static_cast<const DataNode *>(node)->data();
    HeadStart::Parameter &parameter = headStart->parameters[use.parameter];
    // Holds the buffer instead of the data, because a reference to the data
    // would prevent its donation.
    if (!parameter.buffer)
      parameter = {data->buffer(), data->producer()};
    else if (parameter.buffer != data->buffer())
      return abandon();
  }
  if (numConfirmed - numRequested >= kOpsInRequest)
    request();
}

void ExpectedTraces::request() {
  if (headStart->hasFailed || isWorkerMissing) // after a fork
    return abandon();
  std::vector<uint32_t> positions;
  for (size_t i = numRequested; i < numConfirmed; ++i)
    if (current->ops[i].position != kNoPosition)
      positions.push_back(current->ops[i].position);
  numRequested = numConfirmed;
  runOnWorker([headStart = headStart, positions = std::move(positions),
               threads = current->numThreads] {
    if (headStart.use_count() == 1 || headStart->hasFailed)
      return; // the head start was abandoned
    if (at::get_num_threads() != threads)
      at::set_num_threads(threads);
    RunningStepScope running;
    headStart->program->runEarly(*headStart, positions);
  });
}

void ExpectedTraces::abandon() {
  if (!current)
    return;
  ++current->numMisses;
  current = nullptr;
  headStart = nullptr;
}

HeadStartPtr
ExpectedTraces::endTrace(const std::shared_ptr<KnownGraph> &known) {
  if (current && current->known != known)
    abandon();
  if (current)
    current->numMisses = 0;
  current = nullptr;
  graphBefore = lastGraph.get();
  lastGraph = areReused ? known : nullptr;
  lastOps.swap(ops);
  ops.clear();
  areReused = true;
  return std::exchange(headStart, nullptr);
}

void ExpectedTraces::expectAgain(const ProgramPtr &program, int numThreads) {
  auto interpreted = std::dynamic_pointer_cast<InterpretedProgram>(program);
  if (!lastGraph || lastOps.empty() || !interpreted ||
      interpreted->waitsForRanks || interpreted->lastSeconds < kMinSeconds)
    return;
  const Key key{lastOps[0], graphBefore};
  if (traces.size() >= kMaxTraces && !traces.count(key)) {
    std::erase_if(traces,
                  [](const auto &entry) { return !entry.second->mayRepeat(); });
    if (traces.size() >= kMaxTraces)
      traces.clear();
  }
  TracePtr &trace = traces[key];
  if (trace && trace->known == lastGraph && trace->mayRepeat() &&
      trace->program.lock() == interpreted) {
    trace->numThreads = numThreads;
    return;
  }
  trace = std::make_shared<Trace>();
  trace->known = lastGraph;
  trace->program = interpreted;
  trace->generation = TraceCache::ofThisThread().generation();
  trace->numThreads = numThreads;
  std::unordered_map<const GraphNode *, size_t> placeOf;
  for (const GraphNode *op : lastOps) {
    placeOf.emplace(op, trace->ops.size());
    trace->ops.push_back({.node = op});
  }
  uint32_t numScalars = 0;
  const Graph &graph = lastGraph->graph;
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    auto place = placeOf.find(graph.nodes[i]);
    if (place == placeOf.end())
      continue; // data
    Trace::Op &op = trace->ops[place->second];
    if (interpreted->mayRunEarly(i))
      op.position = uint32_t(i);
    op.firstScalar = numScalars;
    numScalars +=
        uint32_t(static_cast<const OpNode *>(op.node)->scalars().size());
  }
  for (const DataUse &use : lastGraph->uses)
    trace->ops[placeOf.at(use.op)].data.push_back(use);
}

bool torch_ltc::isRunOf(const HeadStart &headStart, const Program &program,
                        const Graph &graph) {
  if (headStart.program.get() != &program)
    return false;
  for (size_t i = 0; i < graph.parameters.size(); ++i) {
    const BufferPtr &read = headStart.parameters[i].buffer;
    if (read && read != graph.parameters[i]->buffer())
      return false;
  }
  return true;
}
