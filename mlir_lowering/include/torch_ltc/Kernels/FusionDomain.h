//===- FusionDomain.h - The common iteration space of fused ops -*- C++ -*-===//
//
// Ops that run in one kernel iterate over parts of one common space, the
// domain: an ordered list of factors (sizes). Each loop of an op and each
// dimension of an intermediate value is a consecutive range of factors.
// Example: softmax over the last dimension of 8x64x128, whose input was viewed
// from 512x128:
//
//   factors                 f0 = 8, f1 = 64, f2 = 128
//   scale  (512, 128)       loops [f0 f1] [f2]
//   max    (8, 64, 128)     loops [f0] [f1] [f2 reduced] -> value [f0] [f1]
//   exp(x - max)            loops [f0] [f1] [f2]
//
// An op fits into a domain if it reads each value of the domain exactly at the
// point of the domain where that value was computed. The factors that every op
// has in parallel loops are shared: at different points of the shared factors
// the ops are independent of each other, so that a kernel can loop over these
// factors and run all its ops inside these loops.
//
//===----------------------------------------------------------------------===//

#ifndef TORCH_LTC_KERNELS_FUSIONDOMAIN_H
#define TORCH_LTC_KERNELS_FUSIONDOMAIN_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"

#include "llvm/ADT/MapVector.h"

#include <optional>

namespace mlir::torch_ltc {

/// Factors whose combined (row-major) index is a loop's index.
using FactorRun = SmallVector<unsigned, 2>;

/// An affine function of the factors' indices: the linear index of an element
/// in a contiguous tensor, or a loop's index.
struct LinearForm {
  int64_t offset = 0;
  SmallVector<int64_t> strides; ///< one for each factor; 0: independent of it
};

/// One op of a domain.
struct DomainMember {
  linalg::GenericOp op;
  SmallVector<FactorRun> loops;

  bool has(unsigned factor) const;
  bool isReduced(unsigned factor) const;
};

class FusionDomain {
public:
  /// Whether a domain can contain the op: a generic op on tensors of static
  /// shape whose maps are linear and whose body only computes (it may read
  /// whole tensors with `tensor.extract`).
  static bool isFusible(linalg::GenericOp op);

  /// Adds an op. Returns false if the op doesn't fit; the domain's state is
  /// then unspecified, so copy the domain first. Operands that no member
  /// defines may be read in any order.
  bool add(linalg::GenericOp op);

  /// Adds a reshape of a member's value. Returns false if it doesn't fit.
  bool addView(Operation *view);

  bool contains(Value value) const { return layouts.contains(value); }

  ArrayRef<DomainMember> getMembers() const { return members; }
  /// All factors from the outermost to the innermost.
  ArrayRef<unsigned> getOrder() const { return order; }
  unsigned getNumFactors() const { return sizes.size(); }
  int64_t getSize(unsigned factor) const { return sizes[factor]; }

  /// Factors that are in parallel loops of all members, in order.
  SmallVector<unsigned> getSharedFactors() const;

  /// Product of the factors' sizes.
  int64_t getVolume(ArrayRef<unsigned> factors) const;

  /// Number of iterations of the largest member.
  int64_t getLargestVolume() const;

  /// The linear index of the element that `member` accesses with `map` in an
  /// operand of shape `shape`.
  LinearForm getAccess(const DomainMember &member, AffineMap map,
                       ArrayRef<int64_t> shape) const;

  /// The index of a loop of `member`.
  LinearForm getLoopIndex(const DomainMember &member, unsigned loop) const;

private:
  using Layout = SmallVector<FactorRun>;

  bool alignLoops(linalg::GenericOp op, SmallVectorImpl<FactorRun> &loops,
                  BitVector &isAligned);
  bool alignWithValue(AffineMap map, const Layout &layout,
                      SmallVectorImpl<FactorRun> &loops, BitVector &isAligned);
  void alignWithReads(linalg::GenericOp op, SmallVectorImpl<FactorRun> &loops,
                      BitVector &isAligned);
  void alignBySize(linalg::GenericOp op, SmallVectorImpl<FactorRun> &loops,
                   BitVector &isAligned);
  void recordReads(linalg::GenericOp op, ArrayRef<FactorRun> loops);
  unsigned addFactor(int64_t size, ArrayRef<FactorRun> before);
  std::optional<FactorRun> findUnusedRun(int64_t size,
                                         ArrayRef<FactorRun> used) const;
  /// Splits the run of one dimension into the runs of consecutive dimensions of
  /// the sizes `sizes`.
  std::optional<Layout> splitRun(FactorRun run, ArrayRef<int64_t> sizes);
  void splitFactor(unsigned factor, int64_t innerSize, unsigned &inner);

  SmallVector<int64_t> sizes;  ///< by factor
  SmallVector<unsigned> order; ///< factors, outermost first
  SmallVector<DomainMember> members;
  llvm::MapVector<Value, Layout> layouts; ///< of members' values
  llvm::MapVector<Value, Layout> reads;   ///< how values from outside are read
};

/// Whether `tensor` is a fill or a splat constant: all elements are equal.
bool isUniform(Value tensor);

} // namespace mlir::torch_ltc

#endif // TORCH_LTC_KERNELS_FUSIONDOMAIN_H
