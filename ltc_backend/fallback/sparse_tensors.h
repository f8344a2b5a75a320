//===- sparse_tensors.h - Sparse tensors on device lazy ---------*- C++ -*-===//
//
// A sparse tensor on device lazy is torch's own SparseTensorImpl or
// SparseCsrTensorImpl, whose indices and values are lazy tensors with
// functional wrappers: a write to the result of `values()` writes to the sparse
// tensor, as in eager. The sparse tensor itself has no wrapper:
// functionalization (torch 2.13) doesn't model it. Ops on it run on the CPU,
// except those that ops/sparse.cpp traces.
//
//===----------------------------------------------------------------------===//

#ifndef TORCH_LTC_FALLBACK_SPARSE_TENSORS_H
#define TORCH_LTC_FALLBACK_SPARSE_TENSORS_H

#include <ATen/core/Tensor.h>

#include <vector>

namespace torch_ltc {

/// Sets a hook that is called once, before the first sparse tensor on device
/// lazy is created.
void onFirstSparse(void (*hook)());
/// Calls the hook of `onFirstSparse`, unless it was called before.
void prepareFirstSparse();

/// Whether the layout is COO, CSR, CSC, BSR or BSC, on any device.
bool isSparse(const at::Tensor &tensor);

/// Returns the indices, then the values: two or three tensors.
std::vector<at::Tensor> sparseParts(const at::Tensor &sparse);

/// A CPU tensor with the layout and sizes of `sparse` and these parts.
at::Tensor cpuSparse(const at::Tensor &sparse, std::vector<at::Tensor> parts);

/// A tensor on device lazy with the elements of a sparse CPU tensor.
at::Tensor lazySparse(const at::Tensor &cpu);

/// Creates a COO tensor on device lazy. `parts`: its indices and values, which
/// are lazy tensors with functional wrappers.
at::Tensor lazyCoo(int64_t sparseDim, int64_t denseDim, at::IntArrayRef sizes,
                   const std::vector<at::Tensor> &parts, bool isCoalesced);

/// Creates a compressed sparse tensor on device lazy. `parts`: its compressed
/// indices, plain indices and values, which are lazy tensors.
at::Tensor lazyCompressed(at::Layout layout, at::ScalarType dtype,
                          at::IntArrayRef sizes,
                          const std::vector<at::Tensor> &parts);

/// Stores in `lazy` the value that an op has written to `cpu`. `given`: the
/// parts of `cpu` before the op. If the op wrote a part in place, the part of
/// `lazy` is written in place, too.
void storeSparse(const at::Tensor &lazy, const at::Tensor &cpu,
                 const std::vector<at::Tensor> &given);

} // namespace torch_ltc

#endif // TORCH_LTC_FALLBACK_SPARSE_TENSORS_H
