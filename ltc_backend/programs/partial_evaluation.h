//===- partial_evaluation.h - A failed step without its failure -*- C++ -*-===//
//
// When an op of a program fails, for example because an index is out of bounds,
// eager PyTorch has already computed what came before it. `evaluateAround`
// evaluates the program's graph op by op, without the ops that fail and those
// that depend on them, so that all other results have values.
//
//===----------------------------------------------------------------------===//

#ifndef TORCH_LTC_PROGRAMS_PARTIAL_EVALUATION_H
#define TORCH_LTC_PROGRAMS_PARTIAL_EVALUATION_H

#include "programs/program.h"

#include <functional>
#include <string>
#include <vector>

namespace torch_ltc {

/// A result of the program: either its value or the reason why it has none.
/// Tensors are contiguous and have their own memory.
struct PartialResult {
  at::Tensor value;
  StepErrorPtr error;
  /// If the result has no value and would have been the new value of a tensor:
  /// the value that the first failed op would have replaced. Otherwise
  /// undefined.
  at::Tensor before;
};

struct FailedRun {
  c10::ArrayRef<BufferPtr> parameters;
  /// Why parameters have no values; null for those that have one.
  c10::ArrayRef<StepErrorPtr> parameterErrors;
  c10::ArrayRef<DynamicScalar> scalars;
  c10::ArrayRef<LocationId> locations; // of the nodes, or empty
  /// The error of the program, null if it didn't run.
  StepErrorPtr error;
  /// Makes the error of an op that fails.
  std::function<StepErrorPtr(ErrorKind, const std::string &)> makeError;
};

/// Returns one result for each output. Returns an empty vector if no op fails
/// in the evaluation, or if the program can't be evaluated again (for example,
/// because it has collectives).
std::vector<PartialResult> evaluateAround(const Program &program,
                                          const FailedRun &run);

} // namespace torch_ltc

#endif // TORCH_LTC_PROGRAMS_PARTIAL_EVALUATION_H
