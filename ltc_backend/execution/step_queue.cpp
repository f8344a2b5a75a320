//===- step_queue.cpp - Scheduled steps, first in first out ---------------===//

#include "execution/step_queue.h"

#include "compilation/library_pages.h"
#include "config/config.h"
#include "config/log.h"
#include "events/metrics.h"
#include "events/step_log.h"
#include "memory/running_step.h"
#include "programs/partial_evaluation.h"
#include "programs/worker_state.h"

#include "torch_ltc-c/runtime.h"

#include <ATen/FuncTorchTLS.h>
#include <ATen/Parallel.h>
#include <ATen/PythonTorchFunctionTLS.h>
#include <ATen/SavedTensorHooks.h>
#include <ATen/record_function.h>
#include <c10/core/impl/PythonDispatcherTLS.h>
#include <c10/core/impl/TorchDispatchModeTLS.h>
#include <pthread.h>

#include <atomic>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <thread>
#include <utility>
#include <variant>

using namespace torch_ltc;

namespace {

/// The longest expected time, in seconds, of a run that a waiting thread
/// executes itself. For a longer run, the cost of waking the worker is
/// negligible, and Ctrl-C would have to wait.
constexpr double kMaxSecondsInCaller = 3e-4;

bool isShort(const ScheduledStep &step) {
  const Program &program = *step.program;
  double seconds = program.lastSeconds.load(std::memory_order_relaxed);
  if (step.headStart)
    seconds = std::max(0.0, seconds - step.headStart->seconds);
  return seconds < 0 ? program.isSmall : seconds <= kMaxSecondsInCaller;
}

thread_local bool isWorker = false;

/// torch's thread-local settings in a new thread.
struct WorkerState {
  at::ThreadLocalState all;
  c10::impl::LocalDispatchKeySet keys = c10::impl::tls_local_dispatch_key_set();
  c10::AutogradState gradients = c10::AutogradState::get_tls_state();
};

/// Null until the worker has started; until then no step runs in the thread
/// that scheduled it.
std::atomic<const WorkerState *> workerState{nullptr};

class Queue {
public:
  void push(ScheduledStep step) { push(Item(std::move(step)), inFlight); }
  void push(std::function<void()> work) {
    push(Item(std::move(work)), otherWork);
  }

  /// Runs the step on the calling thread if the queue is empty; otherwise
  /// returns false.
  bool runIfIdle(ScheduledStep &step) {
    {
      std::lock_guard<std::mutex> lock(mutex);
      if (inFlight || otherWork)
        return false;
      ++inFlight;
      isCallerRunning = true;
    }
    {
      TraceLockRelease released;
      run(std::move(step));
    }
    std::lock_guard<std::mutex> lock(mutex);
    if (!items.empty() || isEnding)
      arrived.notify_one();
    return true;
  }

  bool isFull() {
    std::lock_guard<std::mutex> lock(mutex);
    return isFullLocked();
  }

  void waitForRoom() {
    BlockingScope blocking;
    std::unique_lock<std::mutex> lock(mutex);
    waitOrInterrupt(changed, lock, [&] { return !isFullLocked(); });
  }

  void drain() {
    BlockingScope blocking;
    std::unique_lock<std::mutex> lock(mutex);
    waitOrInterrupt(changed, lock, [&] { return inFlight + otherWork == 0; });
  }

  StepErrorPtr takeError() {
    std::lock_guard<std::mutex> lock(mutex);
    StepErrorPtr error = std::exchange(firstError, nullptr);
    return error && !error->wasRaised() ? error : nullptr;
  }

  void shutDown() {
    {
      std::lock_guard<std::mutex> lock(mutex);
      isEnding = true;
    }
    arrived.notify_one();
    if (worker.joinable())
      worker.join();
    std::lock_guard<std::mutex> lock(mutex);
    isEnding = false;
  }

  void run(ScheduledStep step) {
    CompletionPtr completion = step.completion;
    CompletionPtr updatesCompletion = step.updatesCompletion;
    Outcome outcome = runAndLog(std::move(step));
    {
      // Under the lock, so that the threads that `finish` wakes see the queue
      // without this step.
      std::lock_guard<std::mutex> lock(mutex);
      if (outcome.error && (!firstError || firstError->wasRaised()))
        firstError = outcome.error;
      StepOutcome all{outcome.error, outcome.staleInput};
      updatesCompletion->finish(all, std::move(outcome.ofUpdates));
      completion->finish(all, std::move(outcome.ofResults));
      --inFlight;
      isCallerRunning = false;
    }
    changed.notify_all();
    giveBackIdleLibraries();
  }

  /// Called in a forked process, in which the worker doesn't exist. Overwrites
  /// its handle, because joining or destroying the handle would end the
  /// process.
  void noteFork() {
    isWorkerMissing = true;
    new (&worker) std::thread;
    new (&traceLock) TraceLock; // its owner may not exist either
  }

private:
  using Item = std::variant<ScheduledStep, std::function<void()>>;

  void push(Item item, size_t &numItems) {
    {
      std::lock_guard<std::mutex> lock(mutex);
      if (!worker.joinable())
        worker = std::thread([this] { work(); });
      ++numItems;
      items.push_back(std::move(item));
    }
    arrived.notify_one();
  }

  struct Outcome {
    StepErrorPtr error;
    /// The error of the failed step that left an old value in an input.
    StepErrorPtr staleInput;
    /// If the step failed and its parameters are intact: the outcome of each
    /// output as a result, and its outcome as an update of a parameter.
    Completion::Outcomes ofResults = {}, ofUpdates = {};
  };
  /// For each parameter, the error because of which it has no value; null if it
  /// has a value.
  using InputErrors = std::vector<StepErrorPtr>;

  bool isFullLocked() const {
    return int64_t(inFlight) >=
           std::max<int64_t>(1, config().max_steps_in_flight.get());
  }

  void work() {
    noteWorkerState();
    std::unique_lock<std::mutex> lock(mutex);
    for (;;) {
      arrived.wait(lock, [&] {
        return !isCallerRunning && (isEnding || !items.empty());
      });
      if (items.empty())
        return;
      Item item = std::move(items.front());
      items.pop_front();
      lock.unlock();
      if (auto *step = std::get_if<ScheduledStep>(&item))
        run(std::move(*step));
      else
        run(std::move(std::get<std::function<void()>>(item)));
      lock.lock();
    }
  }

  void run(std::function<void()> work) {
    work();
    work = nullptr; // releases what it holds
    {
      std::lock_guard<std::mutex> lock(mutex);
      --otherWork;
    }
    changed.notify_all();
  }

  /// Runs the step and destroys it: its buffers must be released before waiting
  /// threads are notified, because these may allocate at once.
  Outcome runAndLog(ScheduledStep step) {
    Stopwatch stopwatch;
    Outcome outcome;
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
    step.program->lastSeconds = seconds;
    recordTime(Timer::execute, seconds);
    finishStepEvent(step.event, seconds);
    return outcome;
  }

  static InputErrors checkInputs(const ScheduledStep &step, Outcome &outcome) {
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

  static StepErrorPtr errorOf(const ScheduledStep &step, ErrorKind kind,
                              const std::string &text) {
    return std::make_shared<StepError>(kind, describe(step, text),
                                       step.sequence, step.sequenceNumber);
  }

  /// After a failure that left the parameters intact, computes the results that
  /// don't depend on the failed op. Other results that update a parameter get
  /// the value from before the failed op, as in eager, or the parameter's old
  /// value if the graph can't be evaluated.
  static void saveIntactResults(const ScheduledStep &step,
                                const InputErrors &inputErrors,
                                Outcome &outcome) {
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

  static std::string bytesOf(const Buffer &buffer) {
    return {static_cast<const char *>(buffer.data()), buffer.size()};
  }

  static std::string bytesOf(const at::Tensor &tensor) {
    return {static_cast<const char *>(tensor.const_data_ptr()),
            tensor.nbytes()};
  }

  struct Failure {
    ErrorKind kind;
    std::string text;
  };

  static std::optional<Failure> execute(ScheduledStep &step,
                                        bool &areParametersIntact) {
    std::vector<void *> parameters, outputs;
    std::vector<uint64_t> contents;
    for (const BufferPtr &buffer : step.parameters) {
      parameters.push_back(buffer->data());
      contents.push_back(buffer->contents());
    }
    RunConditions conditions = step.conditions;
    conditions.locations = step.nodeLocations;
    if (config().keep_weights.get())
      conditions.parameterContents = contents;
    if (step.headStart && isValid(*step.headStart, contents)) {
      conditions.headStart = step.headStart.get();
      count(Counter::early_ops, step.headStart->numOps);
    }
    try {
      for (size_t i = 0; i < step.outputs.size(); ++i) {
        Buffer &buffer = *step.outputs[i];
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

  /// Whether the head start succeeded and read the same contents as the step.
  static bool isValid(const HeadStart &headStart,
                      c10::ArrayRef<uint64_t> contents) {
    bool isValid = !headStart.hasFailed;
    for (size_t i = 0; i < contents.size(); ++i)
      isValid = isValid && (!headStart.contents[i] ||
                            headStart.contents[i] == contents[i]);
    return isValid;
  }

  static std::string describe(const ScheduledStep &step,
                              const std::string &message) {
    return "Step " + std::to_string(step.number) +
           " failed while it ran: " + message +
           (step.location.empty() ? ""
                                  : " [step ended at " + step.location + "]");
  }

  std::mutex mutex;
  std::condition_variable arrived; // the worker waits for this
  std::condition_variable changed; // all other threads wait for this
  std::deque<Item> items;
  size_t inFlight = 0;          // steps
  size_t otherWork = 0;         // other items
  bool isCallerRunning = false; // meanwhile the worker waits
  bool isEnding = false;
  StepErrorPtr firstError; // a read may have raised it already
  std::thread worker;
};

Queue &queue() {
  static Queue *instance = [] {
    auto *created = new Queue;
    pthread_atfork(nullptr, nullptr, [] { queue().noteFork(); });
    return created;
  }();
  return *instance;
}

} // namespace

void torch_ltc::noteWorkerState() {
  isWorker = true;
  workerState = new WorkerState;
}

/// Whether this thread has settings, other than dispatch keys and gradient
/// modes, that affect Python code (for example, a custom op's kernel) or
/// torch's kernels.
static bool hasOtherSettings() {
  return c10::impl::dispatch_mode_enabled() ||
         c10::impl::PythonDispatcherTLS::get_state() ||
         at::impl::torch_function_mode_enabled() ||
         at::functorch::functorchTLSAccessor() ||
         at::SavedTensorDefaultHooks::get_hooks();
}

WorkerStateGuard::WorkerStateGuard() {
  const WorkerState *state = workerState;
  if (isWorker || !state)
    return;
  if (hasOtherSettings()) {
    all.emplace(state->all);
    return;
  }
  keys.emplace(state->keys);
  ownGradients = c10::AutogradState::get_tls_state();
  c10::AutogradState::set_tls_state(state->gradients);
}

WorkerStateGuard::~WorkerStateGuard() {
  if (ownGradients)
    c10::AutogradState::set_tls_state(*ownGradients);
}

bool torch_ltc::isQueueFull() { return queue().isFull(); }

void torch_ltc::waitForRoomInQueue() { queue().waitForRoom(); }

int torch_ltc::numThreadsOfSteps() {
  int64_t threads = config().num_threads.get();
  return int(threads ? threads : at::get_num_threads());
}

void torch_ltc::runOnWorker(std::function<void()> work) {
  queue().push(std::move(work));
}

void torch_ltc::scheduleStep(ScheduledStep step) {
  thread_local auto sequence = std::make_shared<StepSequence>();
  step.sequence = sequence;
  step.sequenceNumber = ++sequence->scheduled;
  step.conditions.threads = numThreadsOfSteps();
  if (at::hasCallbacks())
    step.threadState.emplace();
  else if (step.isAwaited && !config().num_threads.get() && workerState &&
           isShort(step) && step.program->mayRunInCaller() &&
           queue().runIfIdle(step))
    return;
  ltcPrepareThreads(step.conditions.threads);
  bool isAsync = config().async_execution.get();
  clockid_t clock;
  if (isAsync && !pthread_getcpuclockid(pthread_self(), &clock))
    step.conditions.caller = clock;
  CompletionPtr completion = step.completion;
  queue().push(std::move(step));
  if (!isAsync)
    completion->wait();
}

StepErrorPtr torch_ltc::waitForScheduledSteps() {
  checkMayWait();
  queue().drain();
  return queue().takeError();
}

bool torch_ltc::canKeepOldValue(const CompletionPtr &producer) {
  return !producer || producer->isOfUpdates() || producer->hasSucceeded();
}

void torch_ltc::shutDownStepQueue() {
  queue().shutDown();
  if (StepErrorPtr error = queue().takeError())
    log(LogLevel::Warning, error->report());
}
