//===- blocking.h - Waiting without the caller's language lock --*- C++ -*-===//
//
// A step may run Python code on the worker thread (a backend written in
// Python), which needs Python's lock. A thread that waits for a step may hold
// it: torch's own `Tensor.item()` does. So every wait lets go of it.
//
//===----------------------------------------------------------------------===//

#ifndef TORCH_LTC_MEMORY_BLOCKING_H
#define TORCH_LTC_MEMORY_BLOCKING_H

#include <atomic>

namespace torch_ltc {

/// `release` lets go of the calling thread's lock, if it has it, and returns
/// what `acquire` needs to take it again; null if there was nothing to do.
struct LanguageLock {
  void *(*release)();
  void (*acquire)(void *state);
};

inline std::atomic<const LanguageLock *> languageLock{nullptr};

/// Lives around a wait; made before the mutex of the wait is locked.
class BlockingScope {
public:
  BlockingScope() : lock(languageLock.load(std::memory_order_acquire)) {
    state = lock ? lock->release() : nullptr;
  }
  ~BlockingScope() {
    if (state)
      lock->acquire(state);
  }
  BlockingScope(const BlockingScope &) = delete;
  BlockingScope &operator=(const BlockingScope &) = delete;

private:
  const LanguageLock *lock;
  void *state;
};

} // namespace torch_ltc

#endif // TORCH_LTC_MEMORY_BLOCKING_H
