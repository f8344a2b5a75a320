//===- SizeOrder.h - Orders that a general program relies on ----*- C++ -*-===//
//
// A general program is lowered with stand-ins for the sizes that vary. If a
// pass compares two numbers that may depend on such sizes, and its result is
// only correct for one outcome, the pass records that outcome here; a binding
// to other sizes checks it. Comparisons that only affect speed, and those whose
// outcome is visible in the size of a traced value (which a binding checks
// anyway), needn't be recorded.
//
//===----------------------------------------------------------------------===//

#ifndef TORCH_LTC_DIALECT_LTC_SIZEORDER_H
#define TORCH_LTC_DIALECT_LTC_SIZEORDER_H

#include "mlir/IR/BuiltinOps.h"

namespace mlir::torch_ltc {

/// Whether `op` belongs to a program for all sizes. The code of such a program
/// must be the same for all sizes: for example, no table, number of passes or
/// unroll factor may depend on a size.
bool isForAllSizes(Operation *op);

/// Records that the code generated for `op`, which belongs to a function,
/// relies on `lesser` < `greater`. Has no effect in a program for constant
/// sizes.
void assumeOrder(Operation *op, int64_t lesser, int64_t greater);

/// Sorts `numbers` and records that each number is less than its successor if
/// the two differ.
void assumeOrder(Operation *op, SmallVector<int64_t> numbers);

/// All recorded orders of a function: lesser, greater, lesser, greater, ...
ArrayRef<int64_t> assumedOrders(Operation *function);

} // namespace mlir::torch_ltc

#endif // TORCH_LTC_DIALECT_LTC_SIZEORDER_H
