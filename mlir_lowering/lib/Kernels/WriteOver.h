//===- WriteOver.h - When a kernel may update an argument in place -*- C++ -*-//

#ifndef TORCH_LTC_LIB_KERNELS_WRITEOVER_H
#define TORCH_LTC_LIB_KERNELS_WRITEOVER_H

#include "torch_ltc/Kernels/KernelSchedule.h"

#include <memory>

namespace mlir::torch_ltc {

/// Determines whether kernels may update an argument in place. Caches
/// schedules.
class WriteOverAnalysis {
public:
  /// Whether result `result` of the kernel may overwrite argument `argument`:
  /// both have the same element type and number of elements, and each element
  /// of the argument is last read before the corresponding element of the
  /// result is written.
  bool canWriteOver(func::FuncOp kernel, unsigned argument, unsigned result);

private:
  /// Null if the kernel has no schedule.
  const KernelSchedule *getSchedule(func::FuncOp kernel);

  DenseMap<Operation *, std::unique_ptr<KernelSchedule>> schedules;
};

} // namespace mlir::torch_ltc

#endif // TORCH_LTC_LIB_KERNELS_WRITEOVER_H
