//===- reducer_timer.cpp - Times of DistributedDataParallel ---------------===//
//
// DistributedDataParallel measures forward, backward and communication for its
// logging data, with a timer for each kind of device. For a device without one
// it warns in each process (torch 2.13).
//
//===----------------------------------------------------------------------===//

#include <torch/csrc/distributed/c10d/reducer_timer.hpp>

namespace {

class LazyTimer final : public c10d::Timer {
public:
  explicit LazyTimer(c10::Device) {}

  /// Returns no time: the events are those of tracing, and the step runs later.
  std::optional<int64_t> measureDifference(Event, Event) override {
    return std::nullopt;
  }
};

} // namespace

namespace c10d {
C10_REGISTER_TYPED_CLASS(TimerRegistry, c10::kLazy, LazyTimer)
} // namespace c10d
