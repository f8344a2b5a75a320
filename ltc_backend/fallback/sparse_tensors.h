//===- sparse_tensors.h - Sparse tensors on device lazy ---------*- C++ -*-===//
//
// A sparse tensor on device lazy is torch's own SparseTensorImpl or
// SparseCsrTensorImpl, whose indices and values are lazy tensors with
// functional wrappers: code that reads them with `values()` and writes to them
// writes to the sparse tensor, as in eager. The sparse tensor itself has no
// wrapper: functionalization (torch 2.13) doesn't model it. Ops on it run on
// the CPU.
//
//===----------------------------------------------------------------------===//

#ifndef TORCH_LTC_FALLBACK_SPARSE_TENSORS_H
#define TORCH_LTC_FALLBACK_SPARSE_TENSORS_H

#include <ATen/core/Tensor.h>

#include <vector>

namespace torch_ltc {

/// `hook` is called once, before the first sparse tensor on device lazy is
/// created.
void onFirstSparse(void (*hook)());
/// Calls that hook unless it was called before.
void prepareFirstSparse();

/// COO, CSR, CSC, BSR or BSC, on any device.
bool isSparse(const at::Tensor &tensor);

/// Indices, then values: two or three tensors.
std::vector<at::Tensor> sparseParts(const at::Tensor &sparse);

/// A CPU tensor with the layout and sizes of `sparse` and these parts.
at::Tensor cpuSparse(const at::Tensor &sparse, std::vector<at::Tensor> parts);

/// A tensor of device lazy with the elements of a sparse CPU tensor.
at::Tensor lazySparse(const at::Tensor &cpu);

/// A sparse tensor with the given lazy compressed and plain indices and values.
at::Tensor lazyCompressed(at::Layout layout, at::ScalarType dtype,
                          at::IntArrayRef sizes,
                          const std::vector<at::Tensor> &parts);

/// Writes the new value of `cpu`, whose parts were `given`, to the
/// corresponding lazy tensor. A part that the op wrote in place is written in
/// place here.
void storeSparse(const at::Tensor &lazy, const at::Tensor &cpu,
                 const std::vector<at::Tensor> &given);

} // namespace torch_ltc

#endif // TORCH_LTC_FALLBACK_SPARSE_TENSORS_H
