//===- step_queue.cpp - Scheduled steps and the threads that run them -----===//

#include "execution/step_queue.h"

#include "compilation/library_pages.h"
#include "config/config.h"
#include "events/unraised_errors.h"
#include "execution/step_run.h"
#include "graph/live_tensors.h"
#include "memory/running_step.h"
#include "programs/worker_state.h"

#include "torch_ltc-c/runtime.h"

#include <ATen/Parallel.h>
#include <ATen/record_function.h>
#include <pthread.h>

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <map>
#include <set>
#include <thread>
#include <unordered_set>
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

/// A step that hasn't finished, and the buffers that it reads or overwrites: an
/// overwritten buffer is also a parameter.
struct Unfinished {
  CompletionPtr completion;
  std::vector<const Buffer *> parameters;
  /// Whether `parameters` is filled; a process with one worker doesn't fill it.
  bool areKnown = false;
};

/// The scheduled steps of one chain of collectives, or of all threads that have
/// none, and the thread that runs them in this order.
struct Worker {
  using Item = std::variant<ScheduledStep, std::function<void()>>;

  std::deque<Item> items;
  std::deque<Unfinished> unfinished; // steps that are waiting or running
  size_t otherWork = 0;              // other such items
  bool isCallerRunning = false;      // meanwhile the worker waits
  std::condition_variable arrived;
  std::thread thread;

  bool isIdle() const { return unfinished.empty() && !otherWork; }
  bool isFull() const {
    return int64_t(unfinished.size()) >=
           std::max<int64_t>(1, config().max_steps_in_flight.get());
  }
};

/// The program that the calling thread runs, while no other thread runs one.
thread_local std::optional<const Program *> computing;

class Queue {
public:
  void push(ScheduledStep step) {
    std::lock_guard<std::mutex> lock(mutex);
    Worker &worker = workerOf(step.chain);
    step.follows = stepsBefore(worker, step);
    noteAccesses(worker, step);
    push(worker, std::move(step));
  }
  void push(int64_t chain, std::function<void()> work) {
    std::lock_guard<std::mutex> lock(mutex);
    Worker &worker = workerOf(chain);
    ++worker.otherWork;
    push(worker, std::move(work));
  }

  /// Runs the step on the calling thread if nothing precedes it; otherwise
  /// returns false.
  bool runIfIdle(ScheduledStep &step) {
    Worker *worker;
    {
      std::lock_guard<std::mutex> lock(mutex);
      worker = &workerOf(step.chain);
      if (isComputing || !worker->isIdle() || !isReady(*worker, step))
        return false;
      noteAccesses(*worker, step);
      worker->isCallerRunning = true;
      isComputing = true;
      computing = step.program.get();
    }
    {
      TraceLockRelease released;
      run(*worker, std::move(step));
    }
    std::lock_guard<std::mutex> lock(mutex);
    if (!worker->items.empty() || isEnding)
      worker->arrived.notify_one();
    return true;
  }

  bool isFull(int64_t chain) {
    std::lock_guard<std::mutex> lock(mutex);
    return workerOf(chain).isFull();
  }

  void waitForRoom(int64_t chain) {
    BlockingScope blocking;
    std::unique_lock<std::mutex> lock(mutex);
    Worker &worker = workerOf(chain);
    waitOrInterrupt(changed, lock, [&] { return !worker.isFull(); });
  }

  void drain() {
    BlockingScope blocking;
    std::unique_lock<std::mutex> lock(mutex);
    waitOrInterrupt(changed, lock, [&] {
      return std::all_of(workers.begin(), workers.end(), [](const auto &entry) {
        return entry.second.isIdle();
      });
    });
  }

  StepErrorPtr takeError() {
    std::lock_guard<std::mutex> lock(mutex);
    StepErrorPtr error = std::exchange(firstError, nullptr);
    return error && !error->wasRaised() ? error : nullptr;
  }

  void shutDown() {
    std::vector<std::thread *> threads;
    {
      std::lock_guard<std::mutex> lock(mutex);
      isEnding = true;
      for (auto &[chain, worker] : workers) {
        worker.arrived.notify_one();
        threads.push_back(&worker.thread);
      }
    }
    for (std::thread *thread : threads)
      if (thread->joinable())
        thread->join();
    std::lock_guard<std::mutex> lock(mutex);
    isEnding = false;
  }

  /// Lets other threads run programs until `resume`, if the calling thread runs
  /// one. Returns whether it does.
  bool pause() {
    if (!computing)
      return false;
    std::lock_guard<std::mutex> lock(mutex);
    paused.insert(*computing);
    endComputing();
    return true;
  }

  void resume() {
    std::unique_lock<std::mutex> lock(mutex);
    paused.erase(*computing);
    beginComputing(lock, *computing);
  }

  /// Called in a forked process, in which the workers don't exist. Overwrites
  /// their handles, because joining or destroying a handle would end the
  /// process.
  void noteFork() {
    isWorkerMissing = true;
    for (auto &[chain, worker] : workers)
      new (&worker.thread) std::thread;
    new (&traceLock) TraceLock; // its owner may not exist either
  }

private:
  Worker &workerOf(int64_t chain) {
    auto found = workers.find(chain);
    if (found != workers.end())
      return found->second;
    // If only one thread traces, the chain takes over the thread's worker: a
    // second worker would have a second team of OpenMP threads.
    if (chain && !isTracedByThreads())
      if (auto node = workers.extract(0)) {
        node.key() = chain;
        return workers.insert(std::move(node)).position->second;
      }
    return workers[chain];
  }

  void push(Worker &worker, Worker::Item item) {
    if (!worker.thread.joinable())
      worker.thread = std::thread([this, &worker] { work(worker); });
    worker.items.push_back(std::move(item));
    worker.arrived.notify_one();
  }

  /// The completions of the other workers' unfinished steps that read or
  /// overwrite a buffer that `step` overwrites.
  std::vector<CompletionPtr> stepsBefore(const Worker &own,
                                         const ScheduledStep &step) const {
    std::vector<CompletionPtr> found;
    if (workers.size() == 1)
      return found;
    std::unordered_set<const Buffer *> overwritten;
    for (size_t i = 0; i < step.outputs.size(); ++i)
      if (step.program->outputs[i].place == OutputPlace::Donated)
        overwritten.insert(step.outputs[i].get());
    if (overwritten.empty())
      return found;
    auto isOverwritten = [&](const Buffer *buffer) {
      return overwritten.contains(buffer);
    };
    for (const auto &[chain, worker] : workers)
      for (const Unfinished &other : worker.unfinished)
        if (&worker != &own &&
            (!other.areKnown ||
             std::any_of(other.parameters.begin(), other.parameters.end(),
                         isOverwritten)))
          found.push_back(other.completion);
    return found;
  }

  /// Whether the step needn't wait for steps of other workers.
  bool isReady(const Worker &worker, const ScheduledStep &step) const {
    if (workers.size() == 1)
      return true;
    auto isDone = [](const CompletionPtr &producer) {
      return !producer || producer->isDone();
    };
    return std::all_of(step.producers.begin(), step.producers.end(), isDone) &&
           stepsBefore(worker, step).empty();
  }

  /// Notes which buffers later steps of other workers mustn't overwrite before
  /// the step has finished.
  void noteAccesses(Worker &worker, const ScheduledStep &step) {
    Unfinished &accesses = worker.unfinished.emplace_back();
    accesses.completion = step.completion;
    accesses.areKnown = step.chain || workers.size() > 1;
    if (accesses.areKnown)
      for (const BufferPtr &parameter : step.parameters)
        accesses.parameters.push_back(parameter.get());
  }

  void beginComputing(std::unique_lock<std::mutex> &lock,
                      const Program *program) {
    mayCompute.wait(lock,
                    [&] { return !isComputing && !paused.contains(program); });
    isComputing = true;
    computing = program;
  }

  void endComputing() {
    isComputing = false;
    mayCompute.notify_all();
  }

  void work(Worker &worker) {
    noteWorkerState();
    std::unique_lock<std::mutex> lock(mutex);
    for (;;) {
      worker.arrived.wait(lock, [&] {
        return !worker.isCallerRunning && (isEnding || !worker.items.empty());
      });
      if (worker.items.empty())
        return;
      Worker::Item item = std::move(worker.items.front());
      worker.items.pop_front();
      auto *step = std::get_if<ScheduledStep>(&item);
      if (step && workers.size() > 1) {
        lock.unlock();
        waitForOtherWorkers(*step);
        lock.lock();
      }
      beginComputing(lock, step ? step->program.get() : nullptr);
      lock.unlock();
      if (step)
        run(worker, std::move(*step));
      else
        run(worker, std::move(std::get<std::function<void()>>(item)));
      lock.lock();
    }
  }

  static void waitForOtherWorkers(const ScheduledStep &step) {
    for (const CompletionPtr &other : step.follows)
      other->wait();
    for (const CompletionPtr &producer : step.producers)
      if (producer)
        producer->wait();
  }

  void run(Worker &worker, ScheduledStep step) {
    CompletionPtr completion = step.completion;
    CompletionPtr updatesCompletion = step.updatesCompletion;
    RunOutcome outcome = runStep(std::move(step));
    {
      // Under the lock, so that the threads that `finish` wakes see the queue
      // without this step.
      std::lock_guard<std::mutex> lock(mutex);
      if (outcome.error && (!firstError || firstError->wasRaised()))
        firstError = outcome.error;
      StepOutcome all{outcome.error, outcome.staleInput};
      updatesCompletion->finish(all, std::move(outcome.ofUpdates));
      completion->finish(all, std::move(outcome.ofResults));
      worker.unfinished.pop_front();
      worker.isCallerRunning = false;
      computing.reset();
      endComputing();
    }
    changed.notify_all();
    releaseIdleLibraryPages();
    memoryPool().noteRun();
  }

  void run(Worker &worker, std::function<void()> work) {
    work();
    work = nullptr; // releases what it holds
    {
      std::lock_guard<std::mutex> lock(mutex);
      --worker.otherWork;
      computing.reset();
      endComputing();
    }
    changed.notify_all();
  }

  std::mutex mutex;
  std::condition_variable mayCompute; // workers wait for this
  std::condition_variable changed;    // all other threads wait for this
  std::map<int64_t, Worker> workers;  // by the chain's number; 0: no chain
  /// Whether a thread runs a program. A run that waits for other processes
  /// pauses, so that it doesn't block other chains. A program whose run is
  /// paused isn't run a second time, because it has only one set of buffers.
  bool isComputing = false;
  std::set<const Program *> paused;
  bool isEnding = false;
  StepErrorPtr firstError; // a read may have raised it already
};

Queue &queue() {
  static Queue *instance = [] {
    auto *created = new Queue;
    pthread_atfork(nullptr, nullptr, [] { queue().noteFork(); });
    return created;
  }();
  return *instance;
}

int64_t chainOfThisThread() { return LiveSet::ofThisThread()->chain(); }

} // namespace

StepPause::StepPause() : isPaused(queue().pause()) {}

StepPause::~StepPause() {
  if (isPaused)
    queue().resume();
}

bool torch_ltc::isQueueFull() { return queue().isFull(chainOfThisThread()); }

void torch_ltc::waitForRoomInQueue() {
  queue().waitForRoom(chainOfThisThread());
}

int torch_ltc::numThreadsOfSteps() {
  int64_t threads = config().num_threads.get();
  return int(threads ? threads : at::get_num_threads());
}

void torch_ltc::runOnWorker(std::function<void()> work) {
  queue().push(chainOfThisThread(), std::move(work));
}

void torch_ltc::scheduleStep(ScheduledStep step) {
  thread_local auto sequence = std::make_shared<StepSequence>();
  step.sequence = sequence;
  step.sequenceNumber = ++sequence->scheduled;
  step.conditions.threads = numThreadsOfSteps();
  if (!step.chain)
    step.chain = chainOfThisThread();
  if (at::hasCallbacks())
    step.threadState.emplace();
  else if (step.isAwaited && !config().num_threads.get() && hasWorkerState() &&
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
    reportUnraisedError(error->report());
}
