//===- UnitScheduler.h - Order of a program's kernels ----------*- C++ -*-===//

#ifndef TORCH_LTC_LIB_KERNELS_UNITSCHEDULER_H
#define TORCH_LTC_LIB_KERNELS_UNITSCHEDULER_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/SetVector.h"

namespace mlir::torch_ltc {

/// Sorts the program's ops so that each unit (the members of a group, or one
/// ungrouped op) is contiguous and follows everything that it reads. The order
/// is depth first in program order, except that
///
///   * bounds checks come as early as possible, so that they fail the run
///     before any memory of the caller is overwritten;
///   * the new value of a parameter is computed after all other units that read
///     the old value, unless that makes a cycle, so that the new value can lie
///     in the old value's memory;
///   * units that need no result of another process run before the program
///     waits for the first such result, and units that need only the first
///     result run before it waits for the second, so that messages travel
///     meanwhile;
///   * a collective begins first among the units that need equally many
///     results. A collective that the program waits for immediately begins only
///     after the previous one of its kind has ended, so that the parameters of
///     only one layer are gathered while the previous layer is computed;
///   * a call that blocks until other processes have answered comes directly
///     before the first reader of its result.
class UnitScheduler {
public:
  explicit UnitScheduler(func::FuncOp program);

  /// Moves the ops; fails if the groups depend on each other in a cycle.
  LogicalResult schedule();

private:
  enum class State : uint8_t { New, Open, Done };

  void findProducers();
  void putUpdatesLast();
  /// Makes each synchronous collective begin after the previous one of the same
  /// kind and group has ended.
  void putInOrder();
  /// Units that read the argument, including reads through views.
  llvm::SmallSetVector<unsigned, 4> readersOf(BlockArgument argument);
  /// Whether `unit` depends on `other`, directly or indirectly.
  bool needs(unsigned unit, unsigned other) const;
  /// For each unit, the number (from 1, in program order) of the last wait for
  /// other processes that it contains or depends on; 0 if there is none.
  SmallVector<unsigned> countWaits() const;
  LogicalResult visit(unsigned root);

  func::FuncOp program;
  Block &block;
  SmallVector<SmallVector<Operation *, 4>> units;
  DenseMap<Operation *, unsigned> unitOf;
  SmallVector<llvm::SmallSetVector<unsigned, 4>> producers;
  SmallVector<State> state;
};

} // namespace mlir::torch_ltc

#endif // TORCH_LTC_LIB_KERNELS_UNITSCHEDULER_H
