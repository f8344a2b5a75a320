//===- memory_overlap.h - Operands that share memory ------------*- C++ -*-===//
//
// Eager PyTorch rejects an op that would write an element twice, or write
// elements that it still has to read. Functionalization detects neither (torch
// 2.13). These functions are the checks of ATen/MemoryOverlap.h for tensors
// whose storages have no address. They recognize shared memory by the storage,
// which a view shares with its base.
//
//===----------------------------------------------------------------------===//

#ifndef TORCH_LTC_EAGER_SEMANTICS_MEMORY_OVERLAP_H
#define TORCH_LTC_EAGER_SEMANTICS_MEMORY_OVERLAP_H

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include <string>

namespace torch_ltc {

/// The part of the written tensor that an op may not read.
enum class Overlap : uint8_t {
  None,  ///< the op may read all of the tensor
  Part,  ///< the op may read exactly the elements that it writes, in the same
         ///< order, as elementwise ops do
  Whole, ///< the op may not read the tensor
};

/// Throws if `written` is a CPU tensor and one of `arguments` is lazy, because
/// functionalization would fail an assertion (torch 2.13).
void checkWrittenDevice(const at::Tensor &written,
                        c10::ArrayRef<c10::IValue> arguments,
                        const std::string &opName);

/// Raises eager's error if an op would write the lazy tensor `written` from CPU
/// tensors only.
void checkReadDevices(const at::Tensor &written,
                      c10::ArrayRef<c10::IValue> arguments,
                      const std::string &opName);

/// Whether elements of a tensor may share a position in memory. False if each
/// stride exceeds the extent of the inner dims, as in the usual views.
bool mayOverlap(at::IntArrayRef sizes, at::IntArrayRef strides);

/// Whether several elements of `written` share one position in memory.
bool isWrittenTwice(const at::Tensor &written);

/// Throws eager's error if `isWrittenTwice(written)`.
void checkWrittenOnce(const at::Tensor &written, const std::string &opName);

/// Whether `a` and `b` have the same storage. This check is cheap.
inline bool shareStorage(const at::Tensor &a, const at::Tensor &b) {
  return a.unsafeGetTensorImpl()->unsafe_storage().unsafeGetStorageImpl() ==
         b.unsafeGetTensorImpl()->unsafe_storage().unsafeGetStorageImpl();
}

/// Throws eager's error if `read` overlaps `written` in the way that `rejected`
/// describes.
void checkSharedStorage(const at::Tensor &written, const at::Tensor &read,
                        Overlap rejected, const std::string &opName);

/// Calls `checkSharedStorage` if `read` is a lazy tensor with the storage of
/// `written`.
inline void checkRead(const at::Tensor &written, const at::Tensor &read,
                      Overlap rejected, const std::string &opName) {
  if (rejected != Overlap::None && read.defined() && read.device().is_lazy() &&
      shareStorage(written, read))
    checkSharedStorage(written, read, rejected, opName);
}

} // namespace torch_ltc

#endif // TORCH_LTC_EAGER_SEMANTICS_MEMORY_OVERLAP_H
