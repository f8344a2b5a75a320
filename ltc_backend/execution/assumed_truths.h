//===- assumed_truths.h - Checks that are read after the step ---*- C++ -*-===//
//
// Argument checks of torch.distributions evaluate `if not
// torch._is_all_true(...)`, which needs a value in the middle of a step. Inside
// such a check the value is assumed to be true, and the traced bool is read
// after the step has computed it.
//
//===----------------------------------------------------------------------===//

#ifndef TORCH_LTC_EXECUTION_ASSUMED_TRUTHS_H
#define TORCH_LTC_EXECUTION_ASSUMED_TRUTHS_H

#include "graph/live_tensors.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace torch_ltc {

class AssumedTruth {
public:
  explicit AssumedTruth(at::Tensor flag) : flag(std::move(flag)) {}
  /// Nullopt until the step has computed the bool. True if the bool depends on
  /// an op that failed, because code that reads results of that op gets its
  /// error.
  std::optional<bool> value() const;
  /// Waits for the step that computes the bool, if it has been scheduled.
  void wait() const;
  /// Computes the bool.
  void compute() const;

private:
  at::Tensor flag;
};

/// Makes the calling thread assume that results of `_is_all_true` are true when
/// they are read, unless a capture is recording.
void beginAssuming();
/// Ends what `beginAssuming` began; returns the results that have been assumed
/// to be true since then.
std::vector<std::shared_ptr<AssumedTruth>> endAssuming();

/// Computes tensors whose values the calling thread returns to its caller. If a
/// bool that the thread assumed to be true is false, calls the hook instead of
/// returning: no value of a step with a failed check is read.
void computeForCaller(c10::ArrayRef<at::Tensor> tensors,
                      const std::string &opName);
/// Computes the bools that the thread assumed to be true, and calls the hook if
/// one is false. To be called before an op's error is raised: in eager, the
/// check would have raised first.
void raiseFailedCheck();
/// `hook` raises the error of the failed check.
void onFailedAssumption(void (*hook)());

/// Notes that the calling thread has traced a result of `_is_all_true`.
void noteAllTrue(const at::Tensor &result);
/// Returns whether this bool, which is about to be read, is assumed to be true.
/// If it is, `endAssuming` will return it.
bool assumeTrue(const at::Tensor &flag);

} // namespace torch_ltc

#endif // TORCH_LTC_EXECUTION_ASSUMED_TRUTHS_H
