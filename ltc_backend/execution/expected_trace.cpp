//===- expected_trace.cpp - Traces that will probably repeat --------------===//

#include "execution/expected_trace.h"

#include "compilation/idle_processor.h"
#include "config/config.h"
#include "execution/recording.h"
#include "execution/step_queue.h"
#include "memory/running_step.h"

#include <ATen/Parallel.h>
#include <ATen/record_function.h>
#include <c10/util/hash.h>

#include <algorithm>
#include <atomic>

using namespace torch_ltc;

namespace {

/// Number of expected ops after which the worker is woken to run them. Waking
/// it takes as long as tracing a few ops. Also the number of first ops that
/// determine the expected skeleton.
constexpr size_t kOpsInRequest = 12;
/// Minimum time, in seconds, of a run that is worth a head start.
constexpr double kMinSeconds = 2e-4;
constexpr int kMaxMisses = 4;
constexpr size_t kMaxPatterns = 64;
constexpr uint32_t kNoPosition = UINT32_MAX;

/// Returns the first of the numbers of a thread's ops.
uint64_t firstNumberOfThread() {
  static std::atomic<uint64_t> threads{0};
  return (threads.fetch_add(1) + 1) << 40;
}

/// Whether ops of the calling thread's trace may run on the worker, with
/// `numThreads` threads.
bool mayRunOpsEarly(int numThreads) {
  const std::string mode = config().head_start.get();
  return mode != "off" && !isWorkerMissing && !isRunningStep &&
         config().async_execution.get() && !at::hasCallbacks() &&
         !Recording::current() &&
         (mode == "on" || hasProcessorsFor(numThreads + 1));
}

} // namespace

struct ExpectedTraces::Pattern {
  std::vector<TracedOp> ops;
  /// For each op, its position in the graph; kNoPosition if it isn't needed or
  /// may not run early.
  std::vector<uint32_t> positions;
  GraphSnapshotPtr graph;
  /// For each node, the indices of its results among the graph's results.
  std::unordered_map<uint32_t, c10::SmallVector<uint32_t, 2>> outputs;
  std::weak_ptr<Program> lastProgram; // of the last trace with this skeleton
  int numThreads = 1;
  int numMisses = 0; // consecutive traces that differed
};

ExpectedTraces &ExpectedTraces::ofThisThread() {
  thread_local ExpectedTraces traces;
  return traces;
}

void ExpectedTraces::add(const torch::lazy::NodePtr &node) {
  if (!isClosed || numTracesInVain >= kMaxTracesInVain)
    return;
  auto &op = static_cast<OpNode &>(*node);
  if (!nextNumber)
    nextNumber = firstNumberOfThread();
  if (ops.empty())
    firstNumber = nextNumber;
  ops.push_back(describe(op));
  op.setNumber(nextNumber++);
  if (!isClosed)
    return abandon();
  if (!key)
    firstOps.push_back(node);
  if (ops.size() == kOpsInRequest)
    begin();
  else if (current)
    follow(ops.size() - 1, op);
}

ExpectedTraces::TracedOp ExpectedTraces::describe(const OpNode &op) {
  TracedOp traced{.record = &op.record(),
                  .numScalars = uint32_t(op.scalars().size()),
                  .operands = {}};
  hash = c10::hash_combine(hash, size_t(traced.record));
  for (const torch::lazy::Output &operand : op.operands()) {
    const GraphNode *node = asGraphNode(operand.node);
    Source source{kData, 0};
    if (!node->isData()) {
      const uint64_t number = static_cast<const OpNode *>(node)->number();
      isClosed = isClosed && number >= firstNumber && number < nextNumber;
      source = {uint32_t(number - firstNumber), uint32_t(operand.index)};
    }
    hash = c10::hash_combine(hash, (uint64_t(source.op) << 32) | source.result);
    traced.operands.push_back(source);
  }
  return traced;
}

void ExpectedTraces::begin() {
  key = c10::hash_combine(hashBefore, hash);
  const std::vector<torch::lazy::NodePtr> first = std::exchange(firstOps, {});
  auto found = patterns.find(key);
  if (found == patterns.end() || found->second->numMisses >= kMaxMisses)
    return;
  const ProgramPtr before = found->second->lastProgram.lock();
  if ((before && before->lastSeconds < kMinSeconds) ||
      !mayRunOpsEarly(found->second->numThreads))
    return;
  current = found->second;
  graph = std::make_shared<GraphSnapshot>(*current->graph);
  auto program = std::make_shared<InterpretedProgram>(graph);
  headStart = program->beginHeadStart();
  headStart->program = std::move(program);
  headStart->tracedOps.resize(graph->nodes.size(), 0);
  numRequested = 0;
  for (size_t i = 0; i < first.size() && current; ++i)
    follow(i, static_cast<const OpNode &>(*first[i]));
}

void ExpectedTraces::follow(size_t place, const OpNode &op) {
  if (place >= current->ops.size() || !(current->ops[place] == ops[place]))
    return abandon();
  const uint32_t position = current->positions[place];
  if (position == kNoPosition)
    return;
  setNode(position, op);
  if (current && place + 1 - numRequested >= kOpsInRequest)
    request(place + 1);
}

void ExpectedTraces::setNode(uint32_t position, const OpNode &op) {
  SnapshotNode &node = graph->nodes[position];
  node.attributes = op.attributes();
  node.shapes = op.shapes().vec();
  std::copy(op.scalars().begin(), op.scalars().end(),
            headStart->scalars.begin() + node.firstScalar);
  for (uint32_t k = 0; k < node.numOperands; ++k) {
    SnapshotNode &operand =
        graph->nodes[graph->operands[node.firstOperand + k].position];
    if (operand.record)
      continue;
    const auto &data =
        *static_cast<const DataNode *>(asGraphNode(op.operandNode(k).get()))
             ->data();
    HeadStart::Parameter &parameter = headStart->parameters[operand.parameter];
    if (!parameter.buffer) {
      parameter = {data.buffer(), data.producer()};
      operand.shapes[0] = data.shape();
    } else if (parameter.buffer != data.buffer()) {
      return abandon();
    }
  }
  if (auto results = current->outputs.find(position);
      results != current->outputs.end())
    for (uint32_t result : results->second)
      if (headStart->outputs[result])
        headStart->outputs[result] =
            Buffer::deferred(byteSize(graph->shape(graph->results[result])));
  headStart->tracedOps[position] = op.number();
}

void ExpectedTraces::request(size_t end) {
  if (headStart->hasFailed || isWorkerMissing) // after a fork
    return abandon();
  std::vector<uint32_t> positions;
  for (size_t i = numRequested; i < end; ++i)
    if (current->positions[i] != kNoPosition)
      positions.push_back(current->positions[i]);
  numRequested = end;
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
  graph = nullptr;
}

HeadStartPtr ExpectedTraces::endTrace() {
  if (current && ops.size() != current->ops.size())
    abandon();
  current = nullptr;
  graph = nullptr;
  firstOps.clear();
  if (++numTracesInVain == kMaxTracesInVain)
    patterns.clear();
  lastKey = isClosed ? key : 0;
  key = 0;
  lastOps.swap(ops);
  ops.clear();
  lastFirstNumber = firstNumber;
  isClosed = true;
  hashBefore = std::exchange(hash, 0);
  return std::exchange(headStart, nullptr);
}

/// Whether the graphs differ in arguments and shapes only.
static bool haveEqualStructure(const GraphSnapshot &graph,
                               const GraphSnapshot &other) {
  return graph.operands == other.operands && graph.results == other.results &&
         graph.scalarIsFloat == other.scalarIsFloat &&
         std::equal(graph.nodes.begin(), graph.nodes.end(), other.nodes.begin(),
                    other.nodes.end(),
                    [](const SnapshotNode &a, const SnapshotNode &b) {
                      return a.record == b.record &&
                             a.parameter == b.parameter &&
                             a.firstScalar == b.firstScalar;
                    });
}

void ExpectedTraces::expectAgain(const Graph &graphOfStep,
                                 const ProgramPtr &program, int numThreads) {
  auto interpreted = std::dynamic_pointer_cast<InterpretedProgram>(program);
  if (!interpreted || interpreted->waitsForRanks ||
      (interpreted->lastSeconds > 0 && interpreted->lastSeconds < kMinSeconds))
    return;
  numTracesInVain = 0;
  if (!lastKey)
    return;
  if (patterns.size() >= kMaxPatterns && !patterns.contains(lastKey))
    patterns.clear();
  PatternPtr &entry = patterns[lastKey];
  const bool isSame = entry && entry->ops == lastOps;
  if (isSame && haveEqualStructure(*entry->graph, *interpreted->sharedGraph()))
    entry->numMisses = 0;
  else if (PatternPtr pattern = patternOfLastTrace(graphOfStep, *interpreted)) {
    // `abandon` counts traces with other ops.
    pattern->numMisses = entry ? entry->numMisses + isSame : 0;
    entry = std::move(pattern);
  } else {
    patterns.erase(lastKey);
    return;
  }
  entry->lastProgram = program;
  entry->numThreads = numThreads;
}

ExpectedTraces::PatternPtr
ExpectedTraces::patternOfLastTrace(const Graph &graphOfStep,
                                   const InterpretedProgram &program) const {
  auto pattern = std::make_shared<Pattern>();
  pattern->ops = lastOps;
  pattern->positions.resize(lastOps.size(), kNoPosition);
  for (size_t i = 0; i < graphOfStep.nodes.size(); ++i) {
    if (graphOfStep.nodes[i]->isData())
      continue;
    const uint64_t place =
        static_cast<const OpNode *>(graphOfStep.nodes[i])->number() -
        lastFirstNumber;
    if (place >= lastOps.size())
      return nullptr; // an op of an earlier trace
    if (program.mayRunEarly(i))
      pattern->positions[place] = uint32_t(i);
  }
  pattern->graph = program.sharedGraph();
  for (size_t i = 0; i < graphOfStep.results.size(); ++i)
    pattern->outputs[graphOfStep.results[i].position].push_back(uint32_t(i));
  return pattern;
}

/// Whether two programs of graphs with the same structure write their results
/// to the same places.
static bool haveEqualOutputs(const Program &program, const Program &other) {
  return std::equal(
      program.outputs.begin(), program.outputs.end(), other.outputs.begin(),
      other.outputs.end(), [](const OutputPlan &a, const OutputPlan &b) {
        return a.place == b.place &&
               (a.place == OutputPlace::Fresh || a.parameter == b.parameter) &&
               a.updatedParameter == b.updatedParameter;
      });
}

bool torch_ltc::isRunOf(const HeadStart &headStart, const Program &program,
                        const Graph &graph) {
  const GraphSnapshot *snapshot = program.evaluableGraph();
  if (!snapshot || !program.providesMemory() ||
      !haveEqualStructure(*snapshot, *headStart.program->evaluableGraph()) ||
      !haveEqualOutputs(program, *headStart.program))
    return false;
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const uint64_t traced = headStart.tracedOps[i];
    if (traced &&
        static_cast<const OpNode *>(graph.nodes[i])->number() != traced)
      return false;
  }
  for (size_t i = 0; i < graph.parameters.size(); ++i) {
    const BufferPtr &read = headStart.parameters[i].buffer;
    if (read && read != graph.parameters[i]->buffer())
      return false;
  }
  return true;
}
