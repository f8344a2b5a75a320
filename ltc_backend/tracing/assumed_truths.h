//===- assumed_truths.h - Checks that are read after the step ---*- C++ -*-===//
//
// Argument checks of torch.distributions ask `if not torch._is_all_true(...)`.
// The answer is a value in the middle of a step. Inside of a check it is taken
// to be true, and the bool that was traced is looked at once the step has
// computed it.
//
//===----------------------------------------------------------------------===//

#ifndef TORCH_LTC_TRACING_ASSUMED_TRUTHS_H
#define TORCH_LTC_TRACING_ASSUMED_TRUTHS_H

#include "graph/live_tensors.h"

#include <memory>
#include <optional>
#include <vector>

namespace torch_ltc {

class AssumedTruth {
public:
  explicit AssumedTruth(TensorDataPtr flag) : flag(std::move(flag)) {}
  /// Null while no step has computed it. True if the step failed: that error
  /// has readers of its own.
  std::optional<bool> value() const;

private:
  TensorDataPtr flag;
};

/// From now on the calling thread takes results of `_is_all_true` to be true
/// when they are read, unless a capture records it.
void beginAssuming();
/// Until now; what was assumed.
std::vector<std::shared_ptr<AssumedTruth>> endAssuming();

/// The calling thread has traced a result of `_is_all_true`.
void noteAllTrue(const at::Tensor &result);
/// Whether this bool, which is about to be read, is assumed to be true.
bool assumeTrue(const at::Tensor &flag);

} // namespace torch_ltc

#endif // TORCH_LTC_TRACING_ASSUMED_TRUTHS_H
