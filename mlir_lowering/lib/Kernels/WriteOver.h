//===- WriteOver.h - When a kernel may update an argument in place -*- C++ -*-//

#ifndef TORCH_LTC_LIB_KERNELS_WRITEOVER_H
#define TORCH_LTC_LIB_KERNELS_WRITEOVER_H

#include "torch_ltc/Kernels/KernelSchedule.h"

#include <memory>

namespace mlir::torch_ltc {

/// Says when kernels may update an argument in place. Remembers schedules.
class WriteOverAnalysis {
public:
  /// Whether `result` of the kernel may be written over its argument: both have
  /// as many elements of one type, and each element of the argument is read for
  /// the last time before the element of the result at the same place is
  /// written.
  bool canWriteOver(func::FuncOp kernel, unsigned argument, unsigned result);

private:
  /// Null if the kernel has none.
  const KernelSchedule *getSchedule(func::FuncOp kernel);

  DenseMap<Operation *, std::unique_ptr<KernelSchedule>> schedules;
};

} // namespace mlir::torch_ltc

#endif // TORCH_LTC_LIB_KERNELS_WRITEOVER_H
