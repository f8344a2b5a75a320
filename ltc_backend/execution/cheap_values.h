//===- cheap_values.h - Values that are computed alone ----------*- C++ -*-===//

#ifndef TORCH_LTC_EXECUTION_CHEAP_VALUES_H
#define TORCH_LTC_EXECUTION_CHEAP_VALUES_H

#include "graph/live_tensors.h"

#include <c10/util/ArrayRef.h>

#include <cstdint>
#include <optional>

namespace torch_ltc {

/// Returns the number of ops that compute the pending tensors in `wanted` from
/// data if these are a few cheap ones, and the tensors are masks, counts or
/// sizes (bools or integers); otherwise none. Computing such tensors alone runs
/// these ops twice, but keeps the rest of the graph whole. A floating-point
/// number that is read is usually the loss, which the rest depends on.
std::optional<int64_t> numCheapOps(c10::ArrayRef<TensorDataPtr> wanted);

} // namespace torch_ltc

#endif // TORCH_LTC_EXECUTION_CHEAP_VALUES_H
