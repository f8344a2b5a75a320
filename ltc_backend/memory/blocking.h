//===- blocking.h - Waiting without locks -----------------------*- C++ -*-===//
//
// A thread that is about to wait for another thread may hold two locks: the
// language's lock (Python's GIL), unless a caller has released it, and the
// trace lock. The other thread may need either lock: a step may run Python
// code on the worker thread (a backend written in Python), and another thread's
// destructor of a tensor takes the trace lock. So every wait releases both.
//
// A thread may acquire the GIL while it holds the trace lock, but must not wait
// for the trace lock while it holds the GIL, so the two can't deadlock.
//
//===----------------------------------------------------------------------===//

#ifndef TORCH_LTC_MEMORY_BLOCKING_H
#define TORCH_LTC_MEMORY_BLOCKING_H

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <pthread.h>
#include <utility>

namespace torch_ltc {

/// Functions for the language's lock. `release` releases the lock if the
/// calling thread holds it, and returns the state with which `acquire` takes it
/// again; null if the thread doesn't hold the lock. `checkSignals` takes the
/// lock itself and throws the exception that a signal handler has raised (for
/// example, KeyboardInterrupt).
struct LanguageLock {
  void *(*release)();
  void (*acquire)(void *state);
  void (*checkSignals)();
};

inline std::atomic<const LanguageLock *> languageLock{nullptr};

/// While such an object exists, the calling thread doesn't hold the language's
/// lock.
class LanguageLockRelease {
public:
  LanguageLockRelease() : lock(languageLock.load(std::memory_order_acquire)) {
    state = lock ? lock->release() : nullptr;
  }
  /// May unwind: Python ends a daemon thread in this way when the interpreter
  /// finalizes.
  ~LanguageLockRelease() noexcept(false) {
    if (state)
      lock->acquire(state);
  }
  LanguageLockRelease(const LanguageLockRelease &) = delete;
  LanguageLockRelease &operator=(const LanguageLockRelease &) = delete;

private:
  const LanguageLock *lock;
  void *state;
};

/// Guards the state of lazy tensors that threads share: their values, the
/// choice of buffers that a step may overwrite, and the order of steps.
/// Recursive.
class TraceLock {
public:
  void lock() {
    pthread_t self = pthread_self();
    if (owner.load(std::memory_order_relaxed) != self)
      lockFirst(self);
    ++depth;
  }
  void unlock() {
    if (--depth)
      return;
    owner.store(pthread_t(), std::memory_order_relaxed);
    mutex.unlock();
  }

  /// Releases the lock completely. Returns how many times the calling thread
  /// had locked it.
  int release() {
    if (owner.load(std::memory_order_relaxed) != pthread_self())
      return 0;
    int held = std::exchange(depth, 0);
    owner.store(pthread_t(), std::memory_order_relaxed);
    mutex.unlock();
    return held;
  }
  void acquire(int held) {
    if (!held)
      return;
    lock();
    depth = held;
  }

private:
  void lockFirst(pthread_t self) {
    std::unique_lock<std::mutex> lock(mutex, std::try_to_lock);
    if (!lock) {
      LanguageLockRelease withoutLanguageLock;
      lock.lock();
    }
    lock.release();
    owner.store(self, std::memory_order_relaxed);
  }

  std::mutex mutex;
  std::atomic<pthread_t> owner{};
  int depth = 0; // the owner's
};

inline TraceLock traceLock;

/// While such an object exists, the calling thread doesn't hold the trace lock.
class TraceLockRelease {
public:
  TraceLockRelease() : held(traceLock.release()) {}
  ~TraceLockRelease() { traceLock.acquire(held); }
  TraceLockRelease(const TraceLockRelease &) = delete;
  TraceLockRelease &operator=(const TraceLockRelease &) = delete;

private:
  int held;
};

/// Releases both locks during a wait. Must be created before the wait's mutex
/// is locked.
class BlockingScope {
public:
  BlockingScope() = default;
  BlockingScope(const BlockingScope &) = delete;
  BlockingScope &operator=(const BlockingScope &) = delete;

private:
  LanguageLockRelease withoutLanguageLock; // acquired last
  TraceLockRelease withoutTraceLock;
};

// The functions below must be called while a BlockingScope exists. They throw
// exceptions that signal handlers raise during the wait.

inline constexpr std::chrono::milliseconds untilSignalsAreChecked{20};

inline void checkSignals() {
  if (const LanguageLock *lock = languageLock.load(std::memory_order_acquire))
    lock->checkSignals();
}

template <typename Predicate>
void waitOrInterrupt(std::condition_variable &condition,
                     std::unique_lock<std::mutex> &lock, Predicate isDone) {
  while (!condition.wait_for(lock, untilSignalsAreChecked, isDone)) {
    lock.unlock();
    checkSignals();
    lock.lock();
  }
}

inline void lockOrInterrupt(std::unique_lock<std::timed_mutex> &lock) {
  // ThreadSanitizer (of GCC 12) doesn't see locks with the steady clock.
  while (!lock.try_lock_until(std::chrono::system_clock::now() +
                              untilSignalsAreChecked))
    checkSignals();
}

} // namespace torch_ltc

#endif // TORCH_LTC_MEMORY_BLOCKING_H
