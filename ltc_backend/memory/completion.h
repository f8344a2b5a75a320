//===- completion.h - End of a scheduled step -------------------*- C++ -*-===//

#ifndef TORCH_LTC_MEMORY_COMPLETION_H
#define TORCH_LTC_MEMORY_COMPLETION_H

#include "memory/blocking.h"

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>

namespace torch_ltc {

/// Set once by the thread that runs a step, waited for by everybody who reads
/// one of its results.
class Completion {
public:
  enum class Of { Results, Updates };

  explicit Completion(Of of = Of::Results) : of(of) {}

  /// Whether it is of tensors' new values, which after most errors are the old
  /// ones and so no error.
  bool isOfUpdates() const { return of == Of::Updates; }

  void finish(std::string errorText) {
    {
      std::lock_guard<std::mutex> lock(mutex);
      error = std::move(errorText);
      done.store(true, std::memory_order_release);
    }
    condition.notify_all();
  }

  bool hasSucceeded() const { return isDone() && error.empty(); }
  bool isDone() const { return done.load(std::memory_order_acquire); }

  /// Returns the error's sentence, "" for success.
  const std::string &wait() {
    if (!isDone()) {
      BlockingScope blocking;
      std::unique_lock<std::mutex> lock(mutex);
      condition.wait(lock, [this] { return done.load(); });
    }
    return error;
  }

private:
  const Of of;
  std::atomic<bool> done{false};
  std::mutex mutex;
  std::condition_variable condition;
  std::string error;
};

using CompletionPtr = std::shared_ptr<Completion>;

} // namespace torch_ltc

#endif // TORCH_LTC_MEMORY_COMPLETION_H
