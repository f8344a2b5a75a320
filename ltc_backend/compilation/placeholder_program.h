//===- placeholder_program.h - Until the program is compiled ----*- C++ -*-===//
//
// Tier `auto`: a new program runs op by op at eager's speed, and is compiled by
// a thread of its own once that is worth it.
//
// What a compilation saves isn't known, so it is the problem of renting or
// buying skis: it starts when the runs op by op have taken a share of what the
// compilation is expected to take. Whatever the number of steps turns out to
// be, what is spent is within a constant factor of the best choice. A program
// that is seen once is never compiled.
//
//===----------------------------------------------------------------------===//

#ifndef TORCH_LTC_COMPILATION_PLACEHOLDER_PROGRAM_H
#define TORCH_LTC_COMPILATION_PLACEHOLDER_PROGRAM_H

#include "programs/interpreted_program.h"

#include <functional>

namespace torch_ltc {

class PlaceholderProgram final : public InterpretedProgram {
public:
  /// `compile` is called once at most.
  PlaceholderProgram(GraphSnapshotPtr graph, std::function<void()> compile);

  bool isPlaceholder() const override { return true; }
  void noteReuse() override;
  void requestCompilation() override;

private:
  std::function<void()> compile;
  std::atomic<bool> isRequested{false};
};

/// Teaches the expectation what a compilation took, in seconds.
void noteCompilationSeconds(size_t ops, double seconds);

} // namespace torch_ltc

#endif // TORCH_LTC_COMPILATION_PLACEHOLDER_PROGRAM_H
