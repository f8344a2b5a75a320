//===- view_values.h - Values of views that needn't be kept -----*- C++ -*-===//
//
// A functional wrapper of a view holds the view's value, although the value can
// be derived from that of the base. When the memory is written through another
// wrapper, the value becomes outdated, and is derived again before it is next
// read. At the end of a step,
//
//   * an outdated value would only hold memory, and would prevent the step from
//     updating the memory in place (graph/donation.h);
//   * the current value of a view would be a copy of a part of the memory. If
//     the memory is written in each step, as a bucket of
//     DistributedDataParallel is, this copy is soon outdated.
//
// So these values are dropped. The value of a view of memory that isn't written
// is kept: such a view may be read in many steps. The operand of a view is only
// kept if the user holds it: autograd's record of a view of a view contains the
// inverse of the call, which is never called and holds the operand.
//
//===----------------------------------------------------------------------===//

#ifndef TORCH_LTC_GRAPH_VIEW_VALUES_H
#define TORCH_LTC_GRAPH_VIEW_VALUES_H

#include <ATen/core/Tensor.h>

#include <unordered_map>
#include <vector>

namespace at::functionalization {
struct FunctionalStorageImpl;
}

namespace torch_ltc {

/// The generation (torch's count of writes) of the memory when the wrapper's
/// value was last made current.
size_t &generationOf(at::FunctionalTensorWrapper &wrapper);
/// The memory that a functional wrapper shares with its views.
at::functionalization::FunctionalStorageImpl &
functionalMemory(const c10::TensorImpl &wrapper);
inline at::functionalization::FunctionalStorageImpl &
functionalMemory(const at::Tensor &wrapper) {
  return functionalMemory(*wrapper.unsafeGetTensorImpl());
}

/// Derives the value of a wrapper again if it was dropped. torch's kernels of
/// views take the value of their operand even if it is outdated (2.13).
void restoreDroppedValue(const at::Tensor &wrapper);

/// The wrappers of one thread whose values may have to be dropped. Guarded by
/// the trace lock.
class ViewValues {
public:
  /// Notes a functional wrapper that shares its memory.
  void note(const at::Tensor &wrapper);
  /// Notes `view` and `base` if their values are large. A small value costs
  /// less than deriving it again.
  void noteLarge(const at::Tensor &view, const at::Tensor &base);
  /// Notes a view of a view.
  void noteChained(const at::Tensor &view);

  /// Drops values at the end of a step.
  void drop();
  /// Makes views that were noted as chained release their operands.
  void releaseOperands();

private:
  using WeakWrapper = c10::weak_intrusive_ptr<c10::TensorImpl>;
  struct Memory {
    c10::weak_intrusive_ptr<c10::StorageImpl> storage;
    size_t generation; // at the end of the previous step
  };
  std::unordered_map<c10::TensorImpl *, WeakWrapper> wrappers;
  std::vector<WeakWrapper> chained; // since the end of the previous step
  std::unordered_map<c10::StorageImpl *, Memory> memories; // of `wrappers`
};

} // namespace torch_ltc

#endif // TORCH_LTC_GRAPH_VIEW_VALUES_H
