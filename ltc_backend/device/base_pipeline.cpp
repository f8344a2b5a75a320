//===- base_pipeline.cpp - Support for torch::lazy's own pipeline ---------===//

#include "device/base_pipeline.h"

#include "compilation/program_maker.h"
#include "events/metrics.h"
#include "execution/step_executor.h"
#include "memory/running_step.h"
#include "programs/program_cache.h"

using namespace torch_ltc;
using torch::lazy::BackendDataPtr;

TracedComputation::TracedComputation(GraphSnapshotPtr graph, Hash128 hash)
    : graphPtr(std::move(graph)), hash(hash) {
  for (const SnapshotParameter &parameter : graphPtr->parameters) {
    parameterShapes.push_back(parameter.shape);
    parameterNames.push_back(parameter.name);
  }
  for (bool isFloat : graphPtr->scalarIsFloat) {
    parameterShapes.emplace_back(isFloat ? at::kDouble : at::kLong,
                                 c10::ArrayRef<int64_t>());
    parameterNames.emplace_back();
  }
  if (!graphPtr->results.empty())
    resultShape = graphPtr->shape(graphPtr->results[0]);
}

int TracedComputation::parameters_size() const {
  return int(parameterShapes.size());
}

const std::string TracedComputation::to_string() const {
  return graphText(*graphPtr);
}

void TracedComputation::compile() {
  bool wasInMemory = true;
  program = findOrMakeProgram(
      hash,
      [&] {
        std::string origin;
        return makeProgram(*graphPtr, hash, StepExecutor::get().stepNumber(),
                           captureLocation(), origin);
      },
      wasInMemory);
}

std::vector<BackendDataPtr>
TracedComputation::execute(c10::ArrayRef<BackendDataPtr> arguments) const {
  Stopwatch stopwatch;
  checkMayWait();
  waitForRoomInQueue();
  std::unique_lock<TraceLock> lock(traceLock);
  ScheduledStep step;
  step.program = program;
  step.number = StepExecutor::get().stepNumber();
  for (size_t i = 0; i < arguments.size(); ++i) {
    auto data = std::static_pointer_cast<HostData>(arguments[i]);
    if (i < graphPtr->parameters.size()) {
      step.parameters.push_back(data->buffer());
      step.producers.push_back(data->producer());
    } else {
      at::Scalar number = data->sharedTensor().item();
      step.scalars.push_back(number.isFloatingPoint()
                                 ? DynamicScalar::of(number.toDouble())
                                 : DynamicScalar::of(number.toLong()));
    }
  }
  std::vector<BackendDataPtr> results;
  for (size_t i = 0; i < graphPtr->results.size(); ++i) {
    const torch::lazy::Shape &shape = graphPtr->shape(graphPtr->results[i]);
    const OutputPlan &plan = program->outputs[i];
    BufferPtr buffer = plan.place == OutputPlace::Fresh
                           ? Buffer::allocate(byteSize(shape))
                           : step.parameters[plan.parameter];
    results.push_back(HostData::create(shape, buffer, step.completion));
    if (plan.place == OutputPlace::Forwarded)
      results.back()->Assign(*arguments[plan.parameter]);
    step.outputs.push_back(std::move(buffer));
  }
  CompletionPtr completion = step.completion;
  logAndSchedule(std::move(step), "memory", "sync", stopwatch.seconds());
  lock.unlock();
  if (const StepErrorPtr &error = completion->wait())
    error->raise();
  return results;
}

size_t TracedLoweringContext::AddResult(const torch::lazy::Output &output) {
  results.push_back(output);
  return results.size() - 1;
}

void TracedLoweringContext::AddParameter(const torch::lazy::Output &, size_t,
                                         const torch::lazy::Shape &,
                                         const std::string &) {
  TORCH_CHECK(false, "Device 'lazy' has no op-by-op execution.");
}

torch::lazy::ComputationPtr TracedLoweringContext::Build() {
  Graph graph = buildGraph(results);
  HashState state(6);
  state.add(graph.hash);
  Hash128 hash = state.finish();
  // Repeats equal results, which the graph contains only once: the base
  // pipeline expects one result for each AddResult.
  std::vector<ResultRef> all;
  for (uint32_t result : graph.resultOfRoot)
    all.push_back(graph.results[result]);
  graph.results = std::move(all);
  std::vector<bool> donatable(graph.parameters.size(), false);
  return std::make_shared<TracedComputation>(
      std::make_shared<const GraphSnapshot>(
          takeSnapshot(graph, hash.text(), donatable)),
      hash);
}
