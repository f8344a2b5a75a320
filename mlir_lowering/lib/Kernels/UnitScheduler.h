//===- UnitScheduler.h - Order of a program's kernels ----------*- C++ -*-===//

#ifndef TORCH_LTC_LIB_KERNELS_UNITSCHEDULER_H
#define TORCH_LTC_LIB_KERNELS_UNITSCHEDULER_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/SetVector.h"

namespace mlir::torch_ltc {

/// Sorts the program's ops so that each unit (the members of a group, or one
/// ungrouped op) is contiguous and follows everything that it reads. Depth
/// first in program order, but
///
///   * checks of indices come as early as possible: they fail the run before
///     any memory of the caller is overwritten;
///   * the new value of a parameter is computed after everything else that
///     reads the old one, where that is no cycle: it can then lie in the old
///     one's memory;
///   * what needs no result of another process is computed before the program
///     waits for one, and what needs the first result before it waits for the
///     second: messages travel meanwhile;
///   * a collective begins before what needs no more results than it. One that
///     the program waits for immediately begins only after the previous one of
///     its kind has ended: the parameters of a layer are gathered while the
///     layer before is computed, not those of all layers;
///   * a call that blocks until other processes have answered comes right
///   before
///     the first reader of its result.
class UnitScheduler {
public:
  explicit UnitScheduler(func::FuncOp program);

  /// Moves the ops; fails if the groups depend on each other in a cycle.
  LogicalResult schedule();

private:
  enum class State : uint8_t { New, Open, Done };

  void findProducers();
  void putUpdatesLast();
  /// Makes each synchronous collective begin after the end of the one before.
  void putInOrder();
  /// Units that read the argument, including reads through views.
  llvm::SmallSetVector<unsigned, 4> readersOf(BlockArgument argument);
  /// Whether `unit` depends on `other`, directly or indirectly.
  bool needs(unsigned unit, unsigned other) const;
  /// For each unit, how many of the waits for other processes, in program
  /// order, come before it or are in it.
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
