//===- sparse_tensors.cpp - Sparse tensors on device lazy -----------------===//

#include "fallback/sparse_tensors.h"

#include "graph/live_tensors.h"
#include "shape/strides.h"

#include <ATen/FunctionalTensorWrapper.h>
#include <ATen/Functions.h>
#include <ATen/SparseCsrTensorUtils.h>
#include <ATen/native/SparseTensorUtils.h>

#include <mutex>

using namespace torch_ltc;
using at::Tensor;

namespace {

/// A compressed tensor on device lazy. torch's constructor rejects this device
/// (2.13), so the constructor here first creates a CPU tensor, and then changes
/// its device.
class LazyCompressedImpl final : public at::SparseCsrTensorImpl {
public:
  LazyCompressedImpl(at::Layout layout, caffe2::TypeMeta dtype,
                     at::Device device)
      : SparseCsrTensorImpl(c10::DispatchKeySet(c10::DispatchKey::SparseCsrCPU),
                            at::kCPU, layout, dtype) {
    key_set_ = key_set_ - c10::DispatchKeySet(c10::BackendComponent::CPUBit);
    key_set_ = key_set_ | c10::DispatchKeySet(c10::BackendComponent::LazyBit);
    device_opt_ = device;
  }

  c10::intrusive_ptr<c10::TensorImpl>
  shallow_copy_and_detach(const c10::VariableVersion &counter,
                          bool allowMetadataChange) const override {
    return copyOf(counter, allowMetadataChange);
  }

  c10::intrusive_ptr<c10::TensorImpl>
  shallow_copy_and_detach(c10::VariableVersion &&counter,
                          bool allowMetadataChange) const override {
    return copyOf(counter, allowMetadataChange);
  }

private:
  c10::intrusive_ptr<c10::TensorImpl>
  copyOf(const c10::VariableVersion &counter, bool allowMetadataChange) const {
    auto copy =
        c10::make_intrusive<LazyCompressedImpl>(layout_, dtype(), device());
    copy_tensor_metadata(this, copy.get(), counter, allowMetadataChange);
    copy->crow_indices_ = crow_indices_;
    copy->col_indices_ = col_indices_;
    copy->values_ = values_;
    copy->refresh_numel();
    return copy;
  }

  using TensorImpl::copy_tensor_metadata;
};

/// Uploads a part of a sparse tensor. The result has a functional wrapper,
/// whether or not functionalization is active.
Tensor lazyPart(const Tensor &cpu) {
  Tensor part = makeTensor(HostData::copyOf(cpu));
  if (!hasPackedStrides(cpu))
    setGeometry(part, cpu.strides());
  return at::functionalization::impl::to_functional_tensor(part);
}

void setParts(const Tensor &sparse, const std::vector<Tensor> &parts,
              at::IntArrayRef sizes) {
  if (sparse.is_sparse())
    at::sparse::get_sparse_impl(sparse)->set_indices_and_values_unsafe(
        parts[0], parts[1]);
  else
    at::sparse_csr::get_sparse_csr_impl(sparse)->set_member_tensors(
        parts[0], parts[1], parts[2], sizes);
}

bool isWrittenInPlace(const Tensor &part, const Tensor &given) {
  return part.storage().data() == given.storage().data() &&
         part.sizes() == given.sizes() &&
         part.scalar_type() == given.scalar_type();
}

} // namespace

static void (*firstSparseHook)() = nullptr;

void torch_ltc::onFirstSparse(void (*hook)()) { firstSparseHook = hook; }

void torch_ltc::prepareFirstSparse() {
  static std::once_flag first;
  std::call_once(first, firstSparseHook);
}

bool torch_ltc::isSparse(const Tensor &tensor) {
  return tensor.defined() && tensor.layout() != c10::kStrided &&
         (tensor.is_sparse() || at::sparse_csr::is_sparse_compressed(tensor));
}

std::vector<Tensor> torch_ltc::sparseParts(const Tensor &sparse) {
  if (sparse.is_sparse()) {
    auto *impl = at::sparse::get_sparse_impl(sparse);
    return {impl->indices(), impl->values()};
  }
  auto *impl = at::sparse_csr::get_sparse_csr_impl(sparse);
  return {impl->compressed_indices(), impl->plain_indices(), impl->values()};
}

Tensor torch_ltc::cpuSparse(const Tensor &sparse, std::vector<Tensor> parts) {
  at::TensorOptions options = sparse.options().device(at::kCPU);
  if (!sparse.is_sparse())
    return at::_sparse_compressed_tensor_unsafe(parts[0], parts[1], parts[2],
                                                sparse.sizes(), options);
  auto *impl = at::sparse::get_sparse_impl(sparse);
  return at::_sparse_coo_tensor_with_dims_and_tensors(
      impl->sparse_dim(), impl->dense_dim(), sparse.sizes(), parts[0], parts[1],
      options, impl->coalesced());
}

Tensor torch_ltc::lazyCompressed(at::Layout layout, at::ScalarType dtype,
                                 at::IntArrayRef sizes,
                                 const std::vector<Tensor> &parts) {
  prepareFirstSparse();
  Tensor lazy = at::detail::make_tensor<LazyCompressedImpl>(
      layout, c10::scalarTypeToTypeMeta(dtype), parts.back().device());
  setParts(lazy, parts, sizes);
  return lazy;
}

Tensor torch_ltc::lazyCoo(int64_t sparseDim, int64_t denseDim,
                          at::IntArrayRef sizes,
                          const std::vector<Tensor> &parts, bool isCoalesced) {
  prepareFirstSparse();
  Tensor lazy = at::detail::make_tensor<at::SparseTensorImpl>(
      c10::DispatchKeySet(c10::DispatchKey::SparseLazy), parts[1].dtype());
  auto *impl = at::sparse::get_sparse_impl(lazy);
  impl->raw_resize_(sparseDim, denseDim, sizes);
  setParts(lazy, parts, sizes);
  impl->set_coalesced(isCoalesced);
  return lazy;
}

Tensor torch_ltc::lazySparse(const Tensor &cpu) {
  std::vector<Tensor> parts;
  for (const Tensor &part : sparseParts(cpu))
    parts.push_back(lazyPart(part));
  if (!cpu.is_sparse())
    return lazyCompressed(cpu.layout(), cpu.scalar_type(), cpu.sizes(), parts);
  return lazyCoo(cpu.sparse_dim(), cpu.dense_dim(), cpu.sizes(), parts,
                 cpu.is_coalesced());
}

void torch_ltc::storeSparse(const Tensor &lazy, const Tensor &cpu,
                            const std::vector<Tensor> &given) {
  std::vector<Tensor> results = sparseParts(cpu), parts = sparseParts(lazy);
  for (size_t i = 0; i < parts.size(); ++i) {
    if (!isWrittenInPlace(results[i], given[i])) {
      parts[i] = lazyPart(results[i]);
      continue;
    }
    auto *wrapper =
        at::functionalization::impl::unsafeGetFunctionalWrapper(parts[i]);
    wrapper->replace_(makeTensor(HostData::copyOf(results[i])));
    wrapper->commit_update();
  }
  if (cpu.is_sparse()) {
    auto *impl = at::sparse::get_sparse_impl(lazy);
    impl->raw_resize_(cpu.sparse_dim(), cpu.dense_dim(), cpu.sizes());
    setParts(lazy, parts, cpu.sizes());
    impl->set_coalesced(cpu.is_coalesced());
  } else {
    setParts(lazy, parts, cpu.sizes());
  }
}
