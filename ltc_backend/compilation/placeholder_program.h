//===- placeholder_program.h - Program that isn't compiled yet --*- C++ -*-===//
//
// Tier `auto`: a new program runs op by op at eager's speed, and a separate
// thread compiles it once that pays off.
//
// The benefit of a compilation isn't known in advance, as in the ski rental
// problem. A compiled program is expected to save 0.4 of each run's time. A
// compilation starts when it would have saved, in the runs so far, as much time
// as it is expected to take. So it costs at most as much as it would have
// saved. On an idle processor a compilation delays no step, so there 0.3 of its
// expected time is sufficient. A program that is used once is never compiled.
//
//===----------------------------------------------------------------------===//

#ifndef TORCH_LTC_COMPILATION_PLACEHOLDER_PROGRAM_H
#define TORCH_LTC_COMPILATION_PLACEHOLDER_PROGRAM_H

#include "programs/interpreted_program.h"

#include <functional>

namespace torch_ltc {

class PlaceholderProgram final : public InterpretedProgram {
public:
  /// `compile` is called at most once. Until then, `noteRuns` is called
  /// occasionally; it returns whether a program for all sizes may soon replace
  /// this one.
  PlaceholderProgram(GraphSnapshotPtr graph, std::function<void()> compile,
                     std::function<bool(PlaceholderProgram &)> noteRuns);

  bool isPlaceholder() const override { return true; }
  void noteReuse() override;
  void requestCompilation() override;

  /// Returns the seconds of the runs since the last call.
  double takeSeconds();

private:
  std::function<void()> compile;
  std::function<bool(PlaceholderProgram &)> noteRuns;
  std::atomic<bool> isRequested{false};
  /// Total seconds of runs at which the next decision is due.
  std::atomic<double> nextCheck{0};
  std::atomic<double> secondsTaken{0};
};

/// Whether a program that has run op by op for `seconds` should be compiled.
bool isWorthCompiling(double seconds, const GraphSnapshot &graph);

} // namespace torch_ltc

#endif // TORCH_LTC_COMPILATION_PLACEHOLDER_PROGRAM_H
