//===- interpreted_program.cpp - A graph, op by op, on the CPU ------------===//

#include "programs/interpreted_program.h"

#include "graph/node_arguments.h"
#include "programs/head_start.h"
#include "programs/temporary_values.h"
#include "programs/worker_state.h"

#include <ATen/Functions.h>
#include <ATen/Parallel.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/stack.h>

#include <algorithm>
#include <ctime>
#include <iterator>

using namespace torch_ltc;
using c10::IValue;

namespace {

void appendResults(const IValue &value, std::vector<at::Tensor> &results) {
  if (value.isTensorList())
    for (const at::Tensor &tensor : value.toTensorVector())
      results.push_back(tensor);
  else
    results.push_back(value.isTensor() ? value.toTensor() : at::Tensor());
}

/// Whether `value` has only one reference besides the one passed, and shares
/// its memory with no other tensor and no parameter or result of the program.
bool ownsMemory(const at::Tensor &value) {
  return value.use_count() == 2 && value.is_non_overlapping_and_dense() &&
         value.storage().use_count() == 1 && value.storage().resizable();
}

void makeContiguous(torch::jit::Stack &stack) {
  for (IValue &value : stack)
    if (value.isTensor() && value.toTensor().defined())
      value = value.toTensor().contiguous();
}

bool holdsTensors(Tag tag) {
  return tag == Tag::operand || tag == Tag::operandList ||
         tag == Tag::optionalOperandList;
}

bool isNumberOfRun(Tag tag) {
  return tag == Tag::dynamicInt || tag == Tag::dynamicFloat ||
         tag == Tag::dynamicIntegers || tag == Tag::numberTensor;
}

/// Processor time of the calling thread in seconds. Unlike elapsed time, it
/// doesn't grow while the thread waits for another process (another rank).
double threadSeconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return double(now.tv_sec) + 1e-9 * double(now.tv_nsec);
}

/// Whether the op starts a collective or waits for one.
bool isCollective(const OpRecord &record) {
  return record.family == Family::distributed;
}

/// Estimates whether a run takes less than a millisecond.
bool isSmall(const GraphSnapshot &graph) {
  constexpr size_t kMaxOps = 64;
  constexpr int64_t kMaxElements = 1 << 16;
  int64_t elements = 0;
  for (const SnapshotNode &node : graph.nodes)
    for (const torch::lazy::Shape &shape : node.shapes)
      elements += c10::multiply_integers(shape.sizes());
  return graph.numOps <= kMaxOps && elements <= kMaxElements;
}

RunError errorOf(const SnapshotNode &node, LocationId location,
                 const c10::Error &error) {
  const bool isOfCollective = isCollective(*node.record);
  // A collective's error already names its line.
  std::string place = isOfCollective ? ""
                      : location ? messageSuffix(location)
                                 : "; option source_info shows the Python line";
  RunError result(node.record->name + ": " + error.what_without_backtrace() +
                      place,
                  /*parametersIntact=*/true, kindOf(error));
  result.isOfCollective = isOfCollective;
  return result;
}

} // namespace

PreparedCall::PreparedCall(const GraphSnapshot &graph, size_t position)
    : onCpu(cpuCallOf(*graph.nodes[position].record)) {
  const SnapshotNode &node = graph.nodes[position];
  NodeArguments constants(graph, node, {}, {});
  AttributeReader reader(node.attributes->words);
  for (const ArgumentSpec &spec : node.record->arguments) {
    Attribute attribute = reader.next();
    if (holdsTensors(attribute.tag) || isNumberOfRun(attribute.tag)) {
      varying.emplace_back(uint32_t(arguments.size()), attribute);
      arguments.emplace_back();
    } else {
      arguments.push_back(constants.build(attribute, spec));
    }
  }
}

void torch_ltc::noteCollectives(const GraphSnapshot &graph, Program &program) {
  static const OpRecord &wait = getOpRecord("torch_ltc::collective_wait");
  for (const SnapshotNode &node : graph.nodes) {
    if (!node.record || !isCollective(*node.record))
      continue;
    program.waitsForRanks = true;
    program.numCollectives += node.record != &wait;
  }
}

InterpretedProgram::InterpretedProgram(GraphSnapshotPtr snapshot)
    : graph(std::move(snapshot)) {
  name = graph->name;
  numOps = graph->numOps;
  noteCollectives(*graph, *this);
  isSmall = !waitsForRanks && ::isSmall(*graph);
  for (ResultRef result : graph->results)
    outputs.emplace_back().updatedParameter = updatedParameter(*graph, result);
  std::vector<bool> isNeeded(graph->nodes.size(), false);
  for (ResultRef result : graph->results)
    isNeeded[result.position] = true;
  memory = std::make_unique<ResultMemory>(*graph, outputs);
  numDonated = size_t(
      std::ranges::count(outputs, OutputPlace::Donated, &OutputPlan::place));
  for (const SnapshotNode &node : graph->nodes)
    if (node.record && node.record->family != Family::data_movement)
      for (const torch::lazy::Shape &shape : node.shapes)
        if (shape.scalar_type() != at::ScalarType::Undefined) // is computed
          largestBytes = std::max(largestBytes, byteSize(shape));
  // Collects, from the last node to the first, the operands that no later node
  // reads.
  endOfLastUsed.resize(graph->nodes.size());
  for (size_t i = graph->nodes.size(); i-- > 0;) {
    const SnapshotNode &node = graph->nodes[i];
    for (uint32_t k = 0; k < node.numOperands; ++k) {
      uint32_t operand = graph->operands[node.firstOperand + k].position;
      if (!isNeeded[operand])
        lastUsed.push_back(operand);
      isNeeded[operand] = true;
    }
    endOfLastUsed[i] = uint32_t(lastUsed.size());
  }
}

void InterpretedProgram::checkMemory() const {
  constexpr size_t kLarge = size_t(1) << 30; // a smaller value rarely fails
  if (numDonated == 0 || largestBytes < kLarge)
    return;
  try {
    at::getCPUAllocator()->allocate(largestBytes); // freed at once, unused
  } catch (const c10::Error &error) {
    throw RunError(error.what_without_backtrace(), /*parametersIntact=*/true,
                   kindOf(error));
  }
}

c10::ArrayRef<uint32_t> InterpretedProgram::lastUses(size_t position) const {
  uint32_t begin =
      position + 1 < endOfLastUsed.size() ? endOfLastUsed[position + 1] : 0;
  return c10::ArrayRef<uint32_t>(lastUsed).slice(
      begin, endOfLastUsed[position] - begin);
}

void InterpretedProgram::prepareCalls() const {
  calls.resize(graph->nodes.size());
  for (size_t i = 0; i < calls.size(); ++i)
    if (graph->nodes[i].record)
      calls[i] = std::make_unique<PreparedCall>(*graph, i);
}

std::vector<at::Tensor>
torch_ltc::interpretNode(const GraphSnapshot &graph, size_t position,
                         const std::vector<std::vector<at::Tensor>> &values,
                         c10::ArrayRef<DynamicScalar> scalars,
                         std::optional<LocationId> location) {
  const SnapshotNode &node = graph.nodes[position];
  NodeArguments builder(graph, node, values, scalars);
  AttributeReader reader(node.attributes->words);
  torch::jit::Stack stack;
  for (const ArgumentSpec &spec : node.record->arguments)
    stack.push_back(builder.build(reader.next(), spec));
  try {
    node.record->handle->redispatchBoxed(
        c10::DispatchKeySet(c10::DispatchKey::CPU), &stack);
  } catch (const c10::Error &error) {
    throw errorOf(node, location.value_or(node.location), error);
  }
  std::vector<at::Tensor> results;
  for (const IValue &value : stack)
    appendResults(value, results);
  return results;
}

std::vector<std::vector<at::Tensor>> torch_ltc::interpretGraph(
    const GraphSnapshot &graph, c10::ArrayRef<void *> parameters,
    c10::ArrayRef<DynamicScalar> scalars, const NodeVisitor &visit) {
  at::AutoDispatchBelowAutograd noAutograd;
  std::vector<std::vector<at::Tensor>> values(graph.nodes.size());
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const SnapshotNode &node = graph.nodes[i];
    if (node.record)
      values[i] = interpretNode(graph, i, values, scalars);
    else
      values[i].push_back(tensorAt(parameters[node.parameter], node.shapes[0]));
    if (visit && !visit(i, values[i]))
      break;
  }
  return values;
}

torch::jit::Stack InterpretedProgram::argumentsOf(
    size_t position, const PreparedCall *prepared,
    const std::vector<std::vector<at::Tensor>> &values,
    c10::ArrayRef<DynamicScalar> scalars) const {
  const SnapshotNode &node = graph->nodes[position];
  NodeArguments builder(*graph, node, values, scalars);
  torch::jit::Stack stack;
  if (prepared) {
    stack = prepared->arguments;
    for (const auto &[index, attribute] : prepared->varying)
      stack[index] = builder.build(attribute, node.record->arguments[index]);
    return stack;
  }
  AttributeReader reader(node.attributes->words);
  stack.reserve(node.record->arguments.size());
  for (const ArgumentSpec &spec : node.record->arguments)
    stack.push_back(builder.build(reader.next(), spec));
  return stack;
}

bool InterpretedProgram::isLastReader(size_t position, uint32_t node,
                                      const RunValues &values) const {
  if (values.readsToCome.empty())
    return std::ranges::count(lastUses(position), node) != 0;
  return values.readsToCome[node] ==
         size_t(std::ranges::count(operandsOf(position), node,
                                   &ResultRef::position));
}

void InterpretedProgram::release(size_t position, RunValues &values) const {
  if (values.readsToCome.empty()) {
    for (uint32_t unused : lastUses(position))
      values.ofNodes[unused].clear();
    return;
  }
  for (ResultRef operand : operandsOf(position))
    if (--values.readsToCome[operand.position] == 0)
      values.ofNodes[operand.position].clear();
}

bool InterpretedProgram::writeInPlace(size_t position,
                                      const c10::OperatorHandle &view,
                                      const torch::jit::Stack &stack,
                                      const RunValues &values) const {
  const uint32_t written =
      graph->operands[graph->nodes[position].firstOperand].position;
  const at::Tensor &self = stack[0].toTensor(), &part = stack[1].toTensor();
  if (!isLastReader(position, written, values) || !ownsMemory(self) ||
      self.scalar_type() != part.scalar_type())
    return false;
  torch::jit::Stack arguments(stack.begin(), stack.end());
  arguments.erase(arguments.begin() + 1);
  view.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::CPU), &arguments);
  arguments[0].toTensor().copy_(part);
  return true;
}

bool InterpretedProgram::call(size_t position, const PreparedCall *prepared,
                              RunValues &run,
                              c10::ArrayRef<DynamicScalar> scalars,
                              ResultAddresses &addresses,
                              LocationId location) const {
  std::vector<std::vector<at::Tensor>> &values = run.ofNodes;
  const SnapshotNode &node = graph->nodes[position];
  const CpuCall &onCpu = prepared ? prepared->onCpu : cpuCallOf(*node.record);
  if (onCpu.readsMemory) {
    ResultRef operand = graph->operands[node.firstOperand];
    at::Tensor &value = values[operand.position][operand.index];
    // The op's arguments refer to the operand's memory as if the operand were
    // contiguous, as in the graph. In an op-by-op run, it may be a view.
    if (!value.is_contiguous() || value.storage_offset() != 0)
      value = value.clone(at::MemoryFormat::Contiguous);
  }
  torch::jit::Stack stack = argumentsOf(position, prepared, values, scalars);
  if (onCpu.writtenView &&
      writeInPlace(position, *onCpu.writtenView, stack, run)) {
    values[position].push_back(stack[0].toTensor());
    release(position, run);
    memory->store(position, values, addresses);
    return false;
  }
  if (node.record->wantsContiguous) // eager's callers make them contiguous
    makeContiguous(stack);
  const c10::OperatorHandle *op = &onCpu.op;
  bool overwrites = false;
  if (onCpu.outOp) {
    std::vector<at::Tensor> results =
        memory->ofNode(position, values, addresses);
    if (!results.empty()) {
      op = &*onCpu.outOp;
      overwrites = memory->overwrites(position);
    }
    std::ranges::move(results, std::back_inserter(stack));
  }
  try {
    op->redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::CPU), &stack);
  } catch (const c10::Error &error) {
    throw errorOf(node, location, error);
  }
  for (const IValue &value : stack)
    appendResults(value, values[position]);
  stack.clear();
  release(position, run);
  memory->store(position, values, addresses);
  return overwrites;
}

std::vector<std::vector<at::Tensor>>
InterpretedProgram::evaluate(c10::ArrayRef<void *> parameters,
                             c10::ArrayRef<DynamicScalar> scalars,
                             const RunConditions &conditions) const {
  ResultAddresses none;
  return evaluate(
      {.ofNodes = std::vector<std::vector<at::Tensor>>(graph->nodes.size())},
      parameters, scalars, none, conditions);
}

std::vector<std::vector<at::Tensor>>
InterpretedProgram::evaluate(RunValues values, c10::ArrayRef<void *> parameters,
                             c10::ArrayRef<DynamicScalar> scalars,
                             ResultAddresses &addresses,
                             const RunConditions &conditions) const {
  // torch's setting is per thread, and steps have their own thread.
  if (at::get_num_threads() != conditions.threads)
    at::set_num_threads(conditions.threads);
  at::AutoDispatchBelowAutograd noAutograd;
  const bool isFirst = !wasRun.exchange(true);
  if (!isFirst)
    std::call_once(areCallsPrepared, [this] { prepareCalls(); });
  bool hasOverwritten = false;
  for (size_t i = 0; i < graph->nodes.size(); ++i) {
    const SnapshotNode &node = graph->nodes[i];
    if (!values.hasRun.empty() && values.hasRun[i])
      continue;
    LocationId location =
        conditions.locations.empty() ? node.location : conditions.locations[i];
    if (!node.record) {
      values.ofNodes[i].push_back(
          tensorAt(parameters[node.parameter], node.shapes[0]));
      continue;
    }
    try {
      hasOverwritten |= call(i, isFirst ? nullptr : calls[i].get(), values,
                             scalars, addresses, location);
    } catch (RunError &error) {
      error.parametersIntact = !hasOverwritten;
      throw;
    }
  }
  return std::move(values.ofNodes);
}

void InterpretedProgram::run(c10::ArrayRef<void *> parameters,
                             c10::ArrayRef<DynamicScalar> scalars,
                             c10::ArrayRef<void *> outputPointers,
                             const RunConditions &conditions) {
  // Times only some runs of a small program after the first runs: reading the
  // time is a system call, which takes as long as a small op.
  constexpr uint32_t kAllTimed = 16, kPeriod = 8;
  const uint32_t earlierRuns = numRuns.fetch_add(1, std::memory_order_relaxed);
  const bool isSampled = isSmall && earlierRuns >= kAllTimed;
  const bool isTimed = !isSampled || earlierRuns % kPeriod == 0;
  const double begin = isTimed ? threadSeconds() : 0;
  WorkerStateGuard state;
  TemporaryValues temporary;
  checkMemory();
  ResultAddresses addresses(outputPointers, conditions.outputBuffers);
  RunValues begun;
  if (conditions.headStart) {
    begun = std::move(conditions.headStart->values);
    if (conditions.headStart->program.get() != this)
      secondsRun.fetch_add(conditions.headStart->seconds);
  } else
    begun.ofNodes.resize(graph->nodes.size());
  std::vector<std::vector<at::Tensor>> values =
      evaluate(std::move(begun), parameters, scalars, addresses, conditions);
  at::AutoDispatchBelowAutograd noAutograd;
  try {
    memory->fill(values, addresses);
  } catch (RunError &error) {
    error.parametersIntact = false; // ops may have overwritten some
    throw;
  }
  if (isTimed)
    secondsRun.fetch_add((threadSeconds() - begin) * (isSampled ? kPeriod : 1));
}

//===----------------------------------------------------------------------===//
// Ops that run while the rest of the step is traced
//===----------------------------------------------------------------------===//

bool InterpretedProgram::mayRunEarly(size_t position) const {
  const OpRecord *record = graph->nodes[position].record;
  // A parameter keeps its value until the whole step is known.
  return record && !memory->overwrites(position);
}

HeadStartPtr InterpretedProgram::beginHeadStart() const {
  auto headStart = std::make_shared<HeadStart>();
  const size_t numNodes = graph->nodes.size();
  RunValues &values = headStart->values;
  values.ofNodes.resize(numNodes);
  values.hasRun.resize(numNodes, false);
  values.readsToCome.resize(numNodes, 0);
  for (ResultRef operand : graph->operands)
    ++values.readsToCome[operand.position];
  for (ResultRef result : graph->results)
    ++values.readsToCome[result.position];
  headStart->parameters.resize(graph->parameters.size());
  headStart->contents.resize(graph->parameters.size(), 0);
  headStart->scalars.resize(graph->scalarIsFloat.size());
  for (size_t i = 0; i < outputs.size(); ++i)
    headStart->outputs.push_back(
        outputs[i].place == OutputPlace::Fresh
            ? Buffer::deferred(byteSize(graph->shape(graph->results[i])))
            : nullptr);
  headStart->addresses = {std::vector<void *>(outputs.size()),
                          headStart->outputs};
  return headStart;
}

void InterpretedProgram::runEarly(HeadStart &headStart,
                                  c10::ArrayRef<uint32_t> positions) {
  WorkerStateGuard state;
  at::AutoDispatchBelowAutograd noAutograd;
  TemporaryValues temporary;
  const double begin = threadSeconds();
  for (uint32_t position : positions) {
    bool isReady = true;
    for (ResultRef operand : operandsOf(position))
      isReady = isReady && provide(headStart, operand.position);
    if (headStart.hasFailed)
      break;
    if (!isReady)
      continue;
    try {
      // Calls can't be prepared, because the graph isn't complete.
      call(position, /*prepared=*/nullptr, headStart.values, headStart.scalars,
           headStart.addresses, /*location=*/0);
    } catch (const std::exception &) {
      // The step's run raises the error again, if the trace is as expected.
      headStart.hasFailed = true;
      break;
    }
    headStart.values.hasRun[position] = true;
    ++headStart.numOps;
  }
  const double seconds = threadSeconds() - begin;
  headStart.seconds = headStart.seconds + seconds;
  secondsRun.fetch_add(seconds);
}

bool InterpretedProgram::provide(HeadStart &headStart, size_t position) const {
  const SnapshotNode &node = graph->nodes[position];
  RunValues &values = headStart.values;
  if (node.record || values.hasRun[position])
    return values.hasRun[position];
  const HeadStart::Parameter &parameter = headStart.parameters[node.parameter];
  if (!parameter.buffer)
    return false;
  // Doesn't wait for the producer, which may be a step of another thread that
  // comes after this step in the queue.
  if (parameter.producer && !parameter.producer->hasSucceeded()) {
    headStart.hasFailed = true;
    return false;
  }
  headStart.contents[node.parameter] = parameter.buffer->contents();
  values.ofNodes[position].push_back(
      tensorAt(parameter.buffer->data(), node.shapes[0]));
  values.hasRun[position] = true;
  return true;
}
