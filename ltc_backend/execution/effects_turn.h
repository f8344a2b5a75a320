//===- effects_turn.h - Which thread schedules effects ----------*- C++ -*-===//

#ifndef TORCH_LTC_EXECUTION_EFFECTS_TURN_H
#define TORCH_LTC_EXECUTION_EFFECTS_TURN_H

#include "memory/blocking.h"

#include <condition_variable>
#include <mutex>
#include <thread>
#include <utility>

namespace torch_ltc {

/// The turn of a thread to schedule a graph with effects. Effects must run
/// once, but the trace lock is released during a compilation, so another thread
/// might schedule the same effects meanwhile.
class EffectsTurn {
public:
  /// Returns false if it is another thread's turn. The caller holds the trace
  /// lock.
  bool take() {
    std::lock_guard<std::mutex> lock(mutex);
    if (owner != std::thread::id())
      return owner == std::this_thread::get_id();
    owner = std::this_thread::get_id();
    taken = true;
    return true;
  }
  bool isTaken() const { return taken; }
  /// Whether another thread than the calling one has the turn.
  static bool isTakenByOther() {
    std::lock_guard<std::mutex> lock(mutex);
    return owner != std::thread::id() && owner != std::this_thread::get_id();
  }
  /// Waits for the other thread, and releases the trace lock meanwhile.
  static void wait() {
    BlockingScope blocking;
    std::unique_lock<std::mutex> lock(mutex);
    waitOrInterrupt(ended, lock, [] { return owner == std::thread::id(); });
  }
  void end() {
    if (!std::exchange(taken, false))
      return;
    std::lock_guard<std::mutex> lock(mutex);
    owner = {};
    ended.notify_all();
  }
  EffectsTurn() = default;
  ~EffectsTurn() { end(); }
  EffectsTurn(const EffectsTurn &) = delete;
  EffectsTurn &operator=(const EffectsTurn &) = delete;

private:
  static inline std::mutex mutex;
  static inline std::condition_variable ended;
  static inline std::thread::id owner;
  bool taken = false;
};

} // namespace torch_ltc

#endif // TORCH_LTC_EXECUTION_EFFECTS_TURN_H
