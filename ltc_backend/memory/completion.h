//===- completion.h - End of a scheduled step -------------------*- C++ -*-===//

#ifndef TORCH_LTC_MEMORY_COMPLETION_H
#define TORCH_LTC_MEMORY_COMPLETION_H

#include "events/error_kind.h"
#include "memory/blocking.h"

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>

namespace torch_ltc {

class Buffer;

/// Numbers the steps that one thread schedules.
struct StepSequence {
  std::atomic<uint64_t> scheduled{0};
  /// The errors of all steps up to this number count as raised: one of them was
  /// raised after all of these steps had been scheduled.
  std::atomic<uint64_t> raised{0};
};

/// Why a step failed.
class StepError {
public:
  StepError(ErrorKind kind, std::string sentence,
            std::shared_ptr<StepSequence> sequence, uint64_t number)
      : kind(kind), sentence(std::move(sentence)),
        sequence(std::move(sequence)), number(number) {}

  bool wasRaised() const { return number <= sequence->raised.load(); }
  /// Returns the message for code that is about to report it, and marks the
  /// errors of all steps scheduled so far as raised.
  const std::string &report() const {
    sequence->raised.store(sequence->scheduled.load());
    return sentence;
  }
  [[noreturn]] void raise(const std::string &occasion = "") const {
    throwError(kind, report() + occasion);
  }

private:
  const ErrorKind kind;
  const std::string sentence;
  const std::shared_ptr<StepSequence> sequence;
  const uint64_t number;
};

using StepErrorPtr = std::shared_ptr<const StepError>;

/// The outcome of a step, or of one of its results.
struct StepOutcome {
  /// Why the result has no value; null if it has one.
  StepErrorPtr failure = nullptr;
  /// Why the result still has its old value: the step, or a step whose results
  /// it read, failed.
  StepErrorPtr stale = nullptr;
};

/// The end of a step, set once by the thread that runs the step. Threads that
/// read one of the step's results wait for it.
class Completion {
public:
  /// The outcome of each of a step's results, by the result's buffer.
  using Outcomes = std::unordered_map<const Buffer *, StepOutcome>;

  enum class Of { Results, Updates };

  explicit Completion(Of of = Of::Results) : of(of) {}

  /// Whether the results are new values of existing tensors. After most errors
  /// the tensors keep their old values, so that reading them isn't an error.
  bool isOfUpdates() const { return of == Of::Updates; }

  /// Ends the step. `outcomes`: the outcomes of a failed step's results. If it
  /// is empty, `outcome` applies to all results.
  void finish(StepOutcome outcome, Outcomes outcomes = {}) {
    {
      std::lock_guard<std::mutex> lock(mutex);
      outcomeOfStep = std::move(outcome);
      outcomesOfValues = std::move(outcomes);
      done.store(true, std::memory_order_release);
    }
    condition.notify_all();
  }

  bool hasSucceeded() const { return isDone() && !outcomeOfStep.failure; }
  bool isDone() const { return done.load(std::memory_order_acquire); }

  /// Waits for the step. Returns its error, or null if it succeeded.
  const StepErrorPtr &wait() {
    if (!isDone()) {
      BlockingScope blocking;
      std::unique_lock<std::mutex> lock(mutex);
      waitOrInterrupt(condition, lock, [this] { return done.load(); });
    }
    return outcomeOfStep.failure;
  }
  /// Waits for the step. Returns null if the result in `buffer` has a value,
  /// otherwise the reason why not.
  const StepErrorPtr &waitFor(const Buffer *buffer) {
    wait();
    return outcomeOf(buffer).failure;
  }
  /// Must be called after a wait. Returns why the result in `buffer` is an old
  /// value; null if it isn't, or if that error was already raised.
  StepErrorPtr oldValueError(const Buffer *buffer) const {
    const StepErrorPtr &stale = outcomeOf(buffer).stale;
    return stale && !stale->wasRaised() ? stale : nullptr;
  }

private:
  const StepOutcome &outcomeOf(const Buffer *buffer) const {
    auto found = outcomesOfValues.find(buffer);
    return found == outcomesOfValues.end() ? outcomeOfStep : found->second;
  }

  const Of of;
  std::atomic<bool> done{false};
  std::mutex mutex;
  std::condition_variable condition;
  StepOutcome outcomeOfStep;
  Outcomes outcomesOfValues;
};

using CompletionPtr = std::shared_ptr<Completion>;

} // namespace torch_ltc

#endif // TORCH_LTC_MEMORY_COMPLETION_H
