//===- step_queue.cpp - Scheduled steps, first in first out ---------------===//

#include "executor/step_queue.h"

#include "config/config.h"
#include "events/log.h"
#include "events/metrics.h"
#include "events/step_log.h"
#include "lowering/library_pages.h"
#include "memory/running_step.h"

#include "torch_ltc-c/runtime.h"

#include <ATen/Parallel.h>
#include <ATen/record_function.h>
#include <pthread.h>

#include <condition_variable>
#include <cstring>
#include <deque>
#include <thread>

using namespace torch_ltc;

namespace {

class Queue {
public:
  void push(ScheduledStep step) {
    TORCH_CHECK(!isForked,
                "Device 'lazy' can't be used in a process forked "
                "from one that used it: its worker thread is missing here; "
                "start processes with the 'spawn' method instead.");
    size_t limit =
        size_t(std::max<int64_t>(1, config().max_steps_in_flight.get()));
    BlockingScope blocking;
    std::unique_lock<std::mutex> lock(mutex);
    if (!worker.joinable())
      worker = std::thread([this] { work(); });
    changed.wait(lock, [&] { return inFlight < limit; });
    ++inFlight;
    steps.push_back(std::move(step));
    lock.unlock();
    changed.notify_all();
  }

  void drain() {
    BlockingScope blocking;
    std::unique_lock<std::mutex> lock(mutex);
    changed.wait(lock, [&] { return inFlight == 0; });
  }

  std::string takeError() {
    std::lock_guard<std::mutex> lock(mutex);
    return std::exchange(firstError, "");
  }

  void dropError(const std::string &error) {
    std::lock_guard<std::mutex> lock(mutex);
    if (firstError == error)
      firstError.clear();
  }

  void shutDown() {
    {
      std::lock_guard<std::mutex> lock(mutex);
      isEnding = true;
    }
    changed.notify_all();
    if (worker.joinable())
      worker.join();
    std::lock_guard<std::mutex> lock(mutex);
    isEnding = false;
  }

  void run(ScheduledStep step) {
    CompletionPtr completion = step.completion;
    CompletionPtr updatesCompletion = step.updatesCompletion;
    bool areParametersIntact = false;
    std::string error = runAndLog(std::move(step), areParametersIntact);
    if (!error.empty()) {
      std::lock_guard<std::mutex> lock(mutex);
      if (firstError.empty())
        firstError = error;
    }
    updatesCompletion->finish(areParametersIntact ? "" : error);
    completion->finish(std::move(error));
    giveBackIdleLibraries();
  }

  /// After a fork the worker doesn't exist in the child; joining or
  /// destroying its handle would end the process.
  void noteFork() {
    isForked = true;
    new (&worker) std::thread;
  }

private:
  void work() {
    std::unique_lock<std::mutex> lock(mutex);
    for (;;) {
      changed.wait(lock, [&] { return isEnding || !steps.empty(); });
      if (steps.empty())
        return;
      ScheduledStep step = std::move(steps.front());
      steps.pop_front();
      lock.unlock();
      run(std::move(step));
      lock.lock();
      --inFlight;
      changed.notify_all();
    }
  }

  /// The step ends with the call: its buffers go back before anybody is told,
  /// as a waiting thread may allocate at once.
  std::string runAndLog(ScheduledStep step, bool &areParametersIntact) {
    Stopwatch stopwatch;
    std::string error = execute(step, areParametersIntact);
    double seconds = stopwatch.seconds();
    recordTime(Timer::execute, seconds);
    finishStepEvent(step.event, seconds);
    if (!error.empty() && areParametersIntact)
      keepOldValues(step);
    return error;
  }

  std::string execute(ScheduledStep &step, bool &areParametersIntact) {
    std::string inputError;
    areParametersIntact = true;
    for (const CompletionPtr &input : step.inputs)
      if (const std::string &error = input->wait(); !error.empty()) {
        // Updates fail only where old values were overwritten.
        areParametersIntact &= !input->isOfUpdates();
        if (inputError.empty())
          inputError = error;
      }
    if (!inputError.empty())
      return inputError;
    std::vector<void *> parameters, outputs;
    std::vector<uint64_t> contents;
    for (const BufferPtr &buffer : step.parameters) {
      parameters.push_back(buffer->data());
      contents.push_back(buffer->contents());
    }
    RunConditions conditions = step.conditions;
    if (config().keep_weights.get())
      conditions.parameterContents = contents;
    try {
      for (size_t i = 0; i < step.outputs.size(); ++i) {
        Buffer &buffer = *step.outputs[i];
        buffer.materialize();
        if (step.program->outputs[i].place != OutputPlace::Forwarded)
          buffer.noteWrite();
        outputs.push_back(buffer.data());
      }
    } catch (const c10::Error &error) {
      return describe(step, error.what_without_backtrace());
    }
    areParametersIntact = false;
    std::optional<at::ThreadLocalStateGuard> watched;
    if (step.threadState)
      watched.emplace(*step.threadState);
    at::RecordFunction span(at::RecordScope::FUNCTION);
    if (span.isActive())
      span.before("torch_ltc::execute " + step.program->name.substr(0, 12));
    RunningStepScope running;
    try {
      step.program->run(parameters, step.scalars, outputs, conditions);
      return "";
    } catch (const RunError &error) {
      areParametersIntact = error.parametersIntact;
      return describe(step, error.what());
    } catch (const c10::Error &error) {
      return describe(step, error.what_without_backtrace());
    } catch (const std::exception &error) {
      return describe(step, error.what());
    }
  }

  static void keepOldValues(const ScheduledStep &step) {
    // Copied first: an output may lie in another one's old value.
    std::vector<std::pair<Buffer *, std::string>> copies;
    for (size_t i = 0; i < step.outputs.size(); ++i) {
      std::optional<size_t> updated = step.program->outputs[i].updatedParameter;
      if (!updated || step.outputs[i] == step.parameters[*updated])
        continue;
      const Buffer &old = *step.parameters[*updated];
      copies.emplace_back(
          step.outputs[i].get(),
          std::string(static_cast<const char *>(old.data()), old.size()));
    }
    for (const auto &[buffer, bytes] : copies) {
      buffer->materialize();
      buffer->noteWrite();
      std::memcpy(buffer->data(), bytes.data(), bytes.size());
    }
  }

  static std::string describe(const ScheduledStep &step,
                              const std::string &message) {
    return "Step " + std::to_string(step.number) +
           " failed while it ran: " + message +
           (step.location.empty() ? ""
                                  : " [step ended at " + step.location + "]");
  }

  std::mutex mutex;
  std::condition_variable changed;
  std::deque<ScheduledStep> steps;
  size_t inFlight = 0;
  bool isEnding = false;
  std::atomic<bool> isForked{false};
  std::string firstError;
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

void torch_ltc::scheduleStep(ScheduledStep step) {
  checkMayWait();
  // torch's setting is per thread: that of the thread which asks counts.
  int64_t threads = config().num_threads.get();
  step.conditions.threads = int(threads ? threads : at::get_num_threads());
  if (at::hasCallbacks())
    step.threadState.emplace();
  if (config().async_execution.get()) {
    ltcReleaseCallerThreads(step.conditions.threads);
    clockid_t clock;
    if (!pthread_getcpuclockid(pthread_self(), &clock))
      step.conditions.caller = clock;
    queue().push(std::move(step));
    return;
  }
  // Earlier steps may still be in the queue if the option has just changed.
  queue().drain();
  queue().run(std::move(step));
}

std::string torch_ltc::waitForScheduledSteps() {
  checkMayWait();
  queue().drain();
  return queue().takeError();
}

std::string torch_ltc::takeScheduledError() { return queue().takeError(); }

void torch_ltc::noteErrorIsTold(const std::string &error) {
  queue().dropError(error);
}

bool torch_ltc::canKeepOldValue(const CompletionPtr &producer) {
  return !producer || producer->isOfUpdates() || producer->hasSucceeded();
}

void torch_ltc::shutDownStepQueue() { queue().shutDown(); }
