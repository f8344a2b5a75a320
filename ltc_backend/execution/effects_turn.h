//===- effects_turn.h - Which thread schedules effects ----------*- C++ -*-===//

#ifndef TORCH_LTC_EXECUTION_EFFECTS_TURN_H
#define TORCH_LTC_EXECUTION_EFFECTS_TURN_H

#include "graph/effects.h"
#include "memory/blocking.h"

#include <algorithm>
#include <condition_variable>
#include <map>
#include <mutex>
#include <thread>

namespace torch_ltc {

/// The turn of a thread to schedule a graph with effects. Effects must run
/// once, but the trace lock is released during a compilation, so another thread
/// might schedule the same effects meanwhile. Threads whose graphs have no
/// trace in common have their turns at the same time. If one waited for the
/// other's turn to end, the ranks could deadlock: another rank may only
/// continue after both have started.
class EffectsTurn {
public:
  /// Returns false if it is another thread's turn for one of `traces`. The
  /// caller holds the trace lock.
  bool take(const LiveSets &traces) {
    std::lock_guard<std::mutex> lock(mutex);
    if (isAnyTakenByOther(traces))
      return false;
    for (const std::shared_ptr<LiveSet> &trace : traces)
      if (owners.emplace(trace.get(), std::this_thread::get_id()).second)
        taken.push_back(trace);
    return true;
  }
  bool isTaken() const { return !taken.empty(); }
  static bool isAnyTaken() {
    std::lock_guard<std::mutex> lock(mutex);
    return !owners.empty();
  }
  /// Whether a thread other than the calling one has the turn for one of
  /// `traces`.
  static bool isTakenByOther(const LiveSets &traces) {
    std::lock_guard<std::mutex> lock(mutex);
    return isAnyTakenByOther(traces);
  }
  /// Waits for the other threads, and releases the trace lock meanwhile.
  static void wait(const LiveSets &traces) {
    BlockingScope blocking;
    std::unique_lock<std::mutex> lock(mutex);
    waitOrInterrupt(ended, lock, [&] { return !isAnyTakenByOther(traces); });
  }
  void end() {
    if (taken.empty())
      return;
    std::lock_guard<std::mutex> lock(mutex);
    for (const std::shared_ptr<LiveSet> &trace : taken)
      owners.erase(trace.get());
    taken.clear();
    ended.notify_all();
  }
  EffectsTurn() = default;
  ~EffectsTurn() { end(); }
  EffectsTurn(const EffectsTurn &) = delete;
  EffectsTurn &operator=(const EffectsTurn &) = delete;

private:
  static bool isAnyTakenByOther(const LiveSets &traces) {
    return std::any_of(traces.begin(), traces.end(), [](const auto &trace) {
      auto owner = owners.find(trace.get());
      return owner != owners.end() &&
             owner->second != std::this_thread::get_id();
    });
  }

  static inline std::mutex mutex;
  static inline std::condition_variable ended;
  static inline std::map<const LiveSet *, std::thread::id> owners;
  LiveSets taken;
};

} // namespace torch_ltc

#endif // TORCH_LTC_EXECUTION_EFFECTS_TURN_H
