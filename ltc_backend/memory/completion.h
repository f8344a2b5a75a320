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

namespace torch_ltc {

/// The steps that one thread has scheduled, by number.
struct StepSequence {
  std::atomic<uint64_t> scheduled{0};
  /// Errors of steps up to this one are known to the user: one of them was
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
  /// Returns the message, for code that is about to report it.
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

/// Set once by the thread that runs a step; threads that read one of its
/// results wait for it.
class Completion {
public:
  enum class Of { Results, Updates };

  explicit Completion(Of of = Of::Results) : of(of) {}

  /// Whether it covers new values of existing tensors, which after most errors
  /// are the old values, so that reading them isn't an error.
  bool isOfUpdates() const { return of == Of::Updates; }

  /// `failure`: there are no values. `stale`: there are values, but the step,
  /// or a step whose results it read, failed and left old values.
  void finish(StepErrorPtr failure, StepErrorPtr stale) {
    {
      std::lock_guard<std::mutex> lock(mutex);
      failureOfStep = std::move(failure);
      causeOfOldValues = std::move(stale);
      done.store(true, std::memory_order_release);
    }
    condition.notify_all();
  }

  bool hasSucceeded() const { return isDone() && !failureOfStep; }
  bool isDone() const { return done.load(std::memory_order_acquire); }

  /// Null for success.
  const StepErrorPtr &wait() {
    if (!isDone()) {
      BlockingScope blocking;
      std::unique_lock<std::mutex> lock(mutex);
      waitOrInterrupt(condition, lock, [this] { return done.load(); });
    }
    return failureOfStep;
  }
  /// After `wait`: why the values are old ones, unless the user already knows.
  StepErrorPtr oldValuesError() const {
    return causeOfOldValues && !causeOfOldValues->wasRaised() ? causeOfOldValues
                                                              : nullptr;
  }

private:
  const Of of;
  std::atomic<bool> done{false};
  std::mutex mutex;
  std::condition_variable condition;
  StepErrorPtr failureOfStep, causeOfOldValues;
};

using CompletionPtr = std::shared_ptr<Completion>;

} // namespace torch_ltc

#endif // TORCH_LTC_MEMORY_COMPLETION_H
