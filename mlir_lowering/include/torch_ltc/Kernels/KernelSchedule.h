//===- KernelSchedule.h - The loops of a kernel -----------------*- C++ -*-===//
//
// The loops of a kernel of fused ops (FusionDomain.h), and the ops in each
// loop. `ltc-mlir-schedule-kernels` chooses them and writes them to an
// attribute of the kernel (`#ltc.schedule`), which later passes read:
//
// * the factors become axes: ordered as in memory (outermost first) and merged
//   where every access is linear over the merged factors;
// * shared axes become the kernel's parallel iterations. If the innermost axis
//   is shared, it is split into blocks, because it must also be the vector
//   loop;
// * operands that are contiguous along an axis other than the innermost are
//   read tile by tile;
// * the other axes are loops inside an iteration. Ops with the same inner axes
//   run in one nest, but an op that needs a finished reduction runs in a later
//   nest. Cheap values are recomputed in each nest that needs them; all others
//   are stored in temporaries.
//
// Softmax over the rows of 512x128: axes 512 (shared), 128; nests {max},
// {exp, sum}, {divide}, each a loop over 128.
//
//===----------------------------------------------------------------------===//

#ifndef TORCH_LTC_KERNELS_KERNELSCHEDULE_H
#define TORCH_LTC_KERNELS_KERNELSCHEDULE_H

#include "torch_ltc/Dialect/Ltc/LtcDialect.h"
#include "torch_ltc/Kernels/FusionDomain.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace mlir::torch_ltc {

/// Adjacent factors that form one loop.
struct Axis {
  SmallVector<unsigned, 2> factors; ///< outer to inner
  int64_t size = 1;
};

/// Loops around the bodies of members. Values pass from nest to nest in
/// temporaries and scalars.
struct Nest {
  SmallVector<unsigned> axes; ///< outermost first
  /// Reduced axes without a loop: the body is repeated for each point.
  SmallVector<unsigned> unrolled;
  /// Members whose results this nest stores, in order. Their operands are
  /// computed on demand.
  SmallVector<unsigned> members;
};

class KernelSchedule {
public:
  /// The schedule that `ltc-mlir-schedule-kernels` chose for a kernel that
  /// `isScheduled`. Emits an error if it doesn't match the kernel's ops.
  static FailureOr<KernelSchedule> read(func::FuncOp kernel);

  const FusionDomain &getDomain() const { return domain; }
  ArrayRef<Axis> getAxes() const { return axes; }
  ArrayRef<Nest> getNests() const { return nests; }

  /// Axes that the kernel's iterations cover, without the split axis.
  ArrayRef<unsigned> getOuterAxes() const { return outerAxes; }
  /// The axis that is split into blocks; each iteration processes one block.
  std::optional<unsigned> getSplitAxis() const { return splitAxis; }
  int64_t getBlockSize() const { return blockSize; }
  int64_t getNumBlocks() const;
  /// The axis along which transposed operands are contiguous, if there are any.
  /// Each iteration then processes a tile of kTileSize x kTileSize points of
  /// this axis and the split axis, and first transposes these operands' tiles
  /// into small buffers.
  std::optional<unsigned> getTileAxis() const { return tileAxis; }
  static constexpr int64_t kTileSize = 32;
  /// Whether tiles of an operand with this access are transposed.
  bool isTransposed(const LinearForm &access) const;

  /// Returns the value of which `value` is a reshape, or `value` itself: an
  /// argument, a member's result, or a uniform tensor.
  static Value getRoot(Value value);
  /// The member that computes `root`, if any.
  std::optional<unsigned> getProducer(Value root) const;
  /// Index of a kernel result, if `root` is one.
  std::optional<unsigned> getResultIndex(Value root) const;
  /// Whether a nest stores the member's results (otherwise they are computed on
  /// demand).
  bool isStored(unsigned member) const { return stored[member]; }
  /// Axes of a member inside the kernel's iterations, outermost first.
  ArrayRef<unsigned> getInnerAxes(unsigned member) const {
    return innerAxes[member];
  }
  bool isReduced(unsigned member, unsigned axis) const;
  bool has(unsigned member, unsigned axis) const;

  /// Converts a form over factors to a form over axes.
  LinearForm overAxes(const LinearForm &form) const;
  /// Returns the position at which `member` reads the operand, as a linear form
  /// of the axes.
  LinearForm getAccess(unsigned member, OpOperand &operand) const;

  /// Calls `callback` with every operand that a nest reads, including those of
  /// on-demand members.
  void
  forEachRead(const Nest &nest,
              function_ref<void(unsigned member, OpOperand &)> callback) const;

protected:
  explicit KernelSchedule(func::FuncOp kernel) : kernel(kernel) {}
  /// Returns false if the kernel contains ops that can't be part of a domain.
  bool collectMembers();
  bool collectResults();
  void findInnerAxes();

  func::FuncOp kernel;
  FusionDomain domain;
  SmallVector<Axis> axes;
  SmallVector<unsigned> outerAxes;
  std::optional<unsigned> splitAxis;
  int64_t blockSize = 0;
  std::optional<unsigned> tileAxis;
  DenseMap<Value, unsigned> producers;
  DenseMap<Value, unsigned> results;
  SmallVector<SmallVector<unsigned>> innerAxes; ///< by member
  SmallVector<bool> stored;                     ///< by member
  SmallVector<Nest> nests;

private:
  bool adopt(ltc::ScheduleAttr attribute);
};

/// Approximate number of vector instructions that compute one vector of an op's
/// elements.
int64_t getBodyCost(linalg::GenericOp op);

/// The work for which waking a thread pays off, about four microseconds, in
/// units of 1/64 nanosecond (measured with AVX-512). The work of an element is
/// that of moving it through the second-level cache, plus its arithmetic.
inline constexpr int64_t kWorkOfThread = 4000 * 64;

/// How the runtime may split a kernel among threads.
struct TripCount {
  int64_t count = 1; ///< independent iterations
  int64_t grain = 0; ///< minimum number of iterations per thread; 0 if the
                     ///< kernel is never split
};

/// Returns the iterations and the grain of the kernel's schedule; one iteration
/// if the kernel isn't scheduled.
TripCount getTripCount(func::FuncOp kernel);

/// Whether the kernel's loops are scheduled; other kernels are bufferized.
bool isScheduled(func::FuncOp kernel);

} // namespace mlir::torch_ltc

#endif // TORCH_LTC_KERNELS_KERNELSCHEDULE_H
