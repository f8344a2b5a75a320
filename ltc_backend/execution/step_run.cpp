//===- step_run.cpp - The run of a scheduled step -------------------------===//

#include "execution/step_run.h"

#include "config/config.h"
#include "events/metrics.h"
#include "events/step_log.h"
#include "memory/running_step.h"
#include "programs/partial_evaluation.h"

#include <ATen/record_function.h>

#include <algorithm>
#include <cstring>
#include <utility>

using namespace torch_ltc;

namespace {

/// For each parameter, the error because of which it has no value; null if it
/// has a value.
using InputErrors = std::vector<StepErrorPtr>;

InputErrors checkInputs(const ScheduledStep &step, RunOutcome &outcome) {
  InputErrors errors(step.parameters.size());
  for (size_t i = 0; i < errors.size(); ++i) {
    const CompletionPtr &producer = step.producers[i];
    if (!producer)
      continue;
    const Buffer *buffer = step.parameters[i].get();
    errors[i] = producer->waitFor(buffer);
    if (!outcome.error)
      outcome.error = errors[i];
    if (!errors[i] && !outcome.staleInput)
      outcome.staleInput = producer->oldValueError(buffer);
  }
  return errors;
}

std::string describe(const ScheduledStep &step, const std::string &message) {
  return "Step " + std::to_string(step.number) +
         " failed while it ran: " + message +
         (step.location.empty() ? ""
                                : " [step ended at " + step.location + "]");
}

StepErrorPtr errorOf(const ScheduledStep &step, ErrorKind kind,
                     const std::string &text) {
  return std::make_shared<StepError>(kind, describe(step, text), step.sequence,
                                     step.sequenceNumber);
}

std::string bytesOf(const Buffer &buffer) {
  return {static_cast<const char *>(buffer.data()), buffer.size()};
}

std::string bytesOf(const at::Tensor &tensor) {
  return {static_cast<const char *>(tensor.const_data_ptr()), tensor.nbytes()};
}

/// After a failure that left the parameters intact, computes the results that
/// don't depend on the failed op. Other results that update a parameter get
/// the value from before the failed op, as in eager, or the parameter's old
/// value if the graph can't be evaluated.
void saveIntactResults(const ScheduledStep &step,
                       const InputErrors &inputErrors, RunOutcome &outcome) {
  FailedRun failed{step.parameters,    inputErrors, step.scalars,
                   step.nodeLocations, nullptr,     nullptr};
  if (std::find(inputErrors.begin(), inputErrors.end(), outcome.error) ==
      inputErrors.end())
    failed.error = outcome.error;
  failed.makeError = [&](ErrorKind kind, const std::string &text) {
    return errorOf(step, kind, text);
  };
  std::vector<PartialResult> results = evaluateAround(*step.program, failed);
  // The bytes are copied before any output is written, because an output may
  // overwrite the old value of another output.
  std::vector<std::pair<Buffer *, std::string>> copies;
  for (size_t i = 0; i < step.outputs.size(); ++i) {
    const Buffer *buffer = step.outputs[i].get();
    StepErrorPtr error = outcome.error;
    if (!results.empty())
      error = results[i].error;
    StepOutcome &result = outcome.ofResults[buffer];
    StepOutcome &update = outcome.ofUpdates[buffer];
    result = update = {error, outcome.staleInput};
    std::optional<size_t> updated = step.program->outputs[i].updatedParameter;
    if (!error || (updated && inputErrors[*updated]))
      continue;
    if (results.empty() ? !updated : !results[i].before.defined())
      continue;
    update = {nullptr, error};
    if (!results.empty())
      copies.emplace_back(step.outputs[i].get(), bytesOf(results[i].before));
    else if (step.outputs[i] != step.parameters[*updated])
      copies.emplace_back(step.outputs[i].get(),
                          bytesOf(*step.parameters[*updated]));
  }
  for (size_t i = 0; i < results.size(); ++i)
    if (results[i].value.defined() &&
        step.program->outputs[i].place != OutputPlace::Forwarded)
      copies.emplace_back(step.outputs[i].get(), bytesOf(results[i].value));
  for (const auto &[buffer, bytes] : copies) {
    buffer->materialize();
    buffer->noteWrite();
    std::memcpy(buffer->data(), bytes.data(), bytes.size());
  }
}

struct Failure {
  ErrorKind kind;
  std::string text;
};

/// Whether the head start succeeded and read the same contents as the step.
bool isValid(const HeadStart &headStart, c10::ArrayRef<uint64_t> contents) {
  bool isValid = !headStart.hasFailed;
  for (size_t i = 0; i < contents.size(); ++i)
    isValid = isValid &&
              (!headStart.contents[i] || headStart.contents[i] == contents[i]);
  return isValid;
}

std::optional<Failure> execute(ScheduledStep &step, bool &areParametersIntact) {
  std::vector<void *> parameters, outputs;
  std::vector<uint64_t> contents;
  for (const BufferPtr &buffer : step.parameters) {
    parameters.push_back(buffer->data());
    contents.push_back(buffer->contents());
  }
  RunConditions conditions = step.conditions;
  conditions.locations = step.nodeLocations;
  if (config().cache_packed_weights.get())
    conditions.parameterContents = contents;
  if (step.headStart && isValid(*step.headStart, contents)) {
    conditions.headStart = step.headStart.get();
    count(Counter::early_ops, step.headStart->numOps);
  }
  conditions.outputBuffers = step.outputs;
  const bool providesMemory = step.program->providesMemory();
  try {
    for (size_t i = 0; i < step.outputs.size(); ++i) {
      Buffer &buffer = *step.outputs[i];
      if (!providesMemory)
        buffer.materialize();
      if (step.program->outputs[i].place != OutputPlace::Forwarded)
        buffer.noteWrite();
      outputs.push_back(buffer.data());
    }
  } catch (const c10::Error &error) {
    return Failure{kindOf(error), error.what_without_backtrace()};
  }
  areParametersIntact = step.program->numDonated == 0;
  std::optional<at::ThreadLocalStateGuard> watched;
  if (step.threadState)
    watched.emplace(*step.threadState);
  at::RecordFunction span(at::RecordScope::FUNCTION);
  if (span.isActive())
    span.before("torch_ltc::execute " + step.program->name.substr(0, 12));
  RunningStepScope running;
  try {
    step.program->run(parameters, step.scalars, outputs, conditions);
    return std::nullopt;
  } catch (const RunError &error) {
    areParametersIntact |= error.parametersIntact;
    return Failure{error.kind, error.what()};
  } catch (const c10::Error &error) {
    return Failure{kindOf(error), error.what_without_backtrace()};
  } catch (const std::exception &error) {
    return Failure{ErrorKind::Runtime, error.what()};
  }
}

} // namespace

RunOutcome torch_ltc::runStep(ScheduledStep step) {
  Stopwatch stopwatch;
  RunOutcome outcome;
  InputErrors inputErrors = checkInputs(step, outcome);
  // Whether the donated parameters still hold the old values.
  bool areParametersIntact = true;
  if (!outcome.error)
    if (auto failure = execute(step, areParametersIntact))
      outcome.error = errorOf(step, failure->kind, failure->text);
  if (outcome.error && areParametersIntact) {
    try {
      saveIntactResults(step, inputErrors, outcome);
    } catch (const std::exception &) { // no memory for the results
      outcome.ofResults.clear();
      outcome.ofUpdates.clear();
    }
  }
  double seconds = stopwatch.seconds();
  if (step.headStart)
    seconds += step.headStart->seconds;
  if (!outcome.error) // a run that failed may have ended early
    step.program->lastSeconds = seconds;
  recordTime(Timer::execute, seconds);
  finishStepEvent(step.event, seconds);
  return outcome;
}
