//===- sparse.cpp - Traced ops on sparse tensors --------------------------===//
//
// The indices and values of a sparse tensor are lazy tensors
// (fallback/sparse_tensors.h). If the sizes of an op's result don't depend on
// them, the op can be traced as ops on these parts, instead of running by
// fallback, which waits for the operands' values:
//
//   products of a sparse matrix and a dense one (graph networks)
//   dense + sparse, dense.sparse_mask(sparse) (optimizers, embeddings)
//   copies
//
//===----------------------------------------------------------------------===//

#include "fallback/eager_fallback.h"
#include "fallback/sparse_tensors.h"
#include "ops/optional_tensor.h"
#include "ops/registration.h"
#include "tracing/trace.h"
#include "tracing/wrapped_value.h"

#include <ATen/Functions.h>
#include <torch/library.h>

using namespace torch_ltc;
using at::Scalar;
using at::Tensor;
using c10::IValue;
using c10::OperatorHandle;
using torch::jit::Stack;

namespace {

constexpr const char *productName = "torch_ltc::sparse_mm";

/// The product's kernel on the CPU, for eager calls and for host calls of
/// programs. `format`: the number of the c10::Layout of the matrix, whose
/// indices are `indices` (COO), or `indices` (compressed) and `plain_indices`.
Tensor sparseProduct(const Tensor &indices, const OptionalTensor &plainIndices,
                     const Tensor &values, const Tensor &mat2, int64_t rows,
                     int64_t format, bool isCoalesced) {
  const std::array<int64_t, 2> sizes{rows, mat2.size(0)};
  at::TensorOptions options = values.options().layout(at::Layout(format));
  Tensor matrix = exists(plainIndices)
                      ? at::_sparse_compressed_tensor_unsafe(
                            indices, *plainIndices, values, sizes, options)
                      : at::_sparse_coo_tensor_with_dims_and_tensors(
                            2, 0, sizes, indices, values, options, isCoalesced);
  return at::mm(matrix, mat2);
}

Tensor sparseProductMeta(const Tensor &, const OptionalTensor &,
                         const Tensor &values, const Tensor &mat2, int64_t rows,
                         int64_t, bool) {
  return at::empty({rows, mat2.size(1)}, values.options());
}

TORCH_LIBRARY_FRAGMENT(torch_ltc, library) {
  library.def("sparse_mm(Tensor indices, Tensor? plain_indices, Tensor values, "
              "Tensor mat2, int rows, int format, bool is_coalesced) -> "
              "Tensor");
  library.impl("sparse_mm",
               torch::dispatch(c10::DispatchKey::CompositeExplicitAutograd,
                               TORCH_FN(sparseProduct)));
  library.impl("sparse_mm", torch::dispatch(c10::DispatchKey::Meta,
                                            TORCH_FN(sparseProductMeta)));
}

bool isLazyCoo(const Tensor &tensor) {
  return tensor.defined() && tensor.is_sparse() && tensor.device().is_lazy();
}

bool isDense(const Tensor &tensor) {
  return tensor.defined() && tensor.layout() == c10::kStrided &&
         tensor.device().is_lazy();
}

/// Whether PyTorch's kernel of a product accepts the dtype.
bool hasProducts(at::ScalarType dtype) {
  return dtype == at::kFloat || dtype == at::kDouble;
}

/// The parts without functional wrappers.
std::vector<Tensor> plainParts(const Tensor &sparse) {
  std::vector<Tensor> parts = sparseParts(sparse);
  for (Tensor &part : parts)
    part = valueOf(part);
  return parts;
}

/// The index tensor of each dim, from the indices of a COO tensor.
c10::List<std::optional<Tensor>> indicesOfDims(const Tensor &indices) {
  c10::List<std::optional<Tensor>> result;
  for (int64_t dim = 0; dim < indices.size(0); ++dim)
    result.push_back(indices.select(0, dim));
  return result;
}

/// `std::nullopt` if the op can't be traced: it then runs by fallback, which
/// raises eager's error if eager rejects the arguments.
using Traced = std::optional<Tensor>;

Traced product(const Tensor &matrix, const Tensor &mat2) {
  if (!matrix.defined() || !isSparse(matrix) || !matrix.device().is_lazy() ||
      !isDense(mat2) || matrix.dim() != 2 || mat2.dim() != 2 ||
      matrix.scalar_type() != mat2.scalar_type() ||
      !hasProducts(matrix.scalar_type()) || matrix.size(1) != mat2.size(0))
    return std::nullopt;
  const at::Layout layout = matrix.layout();
  if (layout != at::kSparse && layout != at::kSparseCsr &&
      layout != at::kSparseCsc)
    return std::nullopt;
  if (layout == at::kSparse && matrix.sparse_dim() != 2)
    return std::nullopt;
  if (reasonForFallback("aten::mm", getOpRecord(productName).emitName))
    return std::nullopt;
  std::vector<Tensor> parts = plainParts(matrix);
  const bool isCoo = layout == at::kSparse;
  return traceOp(productName,
                 {parts[0], isCoo ? IValue() : IValue(parts[1]), parts.back(),
                  mat2, matrix.size(0), int64_t(layout),
                  isCoo && matrix.is_coalesced()});
}

Traced traceMm(at::ArrayRef<IValue> arguments) {
  return product(arguments[0].toTensor(), arguments[1].toTensor());
}

Traced traceAddmm(at::ArrayRef<IValue> arguments) {
  const Tensor self = arguments[0].toTensor();
  const Scalar beta = arguments[3].toScalar(), alpha = arguments[4].toScalar();
  if (!isDense(self) ||
      self.scalar_type() != arguments[2].toTensor().scalar_type())
    return std::nullopt;
  Traced result = product(arguments[1].toTensor(), arguments[2].toTensor());
  if (!result || !at::is_expandable_to(self.sizes(), result->sizes()))
    return std::nullopt;
  if (!alpha.equal(1))
    result = result->mul(alpha);
  // As in eager, NaN in `self` has no effect if beta is 0.
  return beta.equal(0) ? result : at::add(*result, self, beta);
}

Traced sum(const Tensor &self, const Tensor &other, const Scalar &alpha) {
  if (!isDense(self) || !isLazyCoo(other) || self.sizes() != other.sizes() ||
      self.scalar_type() != other.scalar_type() ||
      self.scalar_type() == at::kBool || other.sparse_dim() == 0)
    return std::nullopt;
  std::vector<Tensor> parts = plainParts(other);
  if (other.sparse_dim() == 1)
    return at::index_add(self, 0, parts[0].select(0, 0), parts[1], alpha);
  return at::index_put(self, indicesOfDims(parts[0]),
                       alpha.equal(1) ? parts[1] : parts[1].mul(alpha),
                       /*accumulate=*/true);
}

Traced traceAdd(at::ArrayRef<IValue> arguments) {
  return sum(arguments[0].toTensor(), arguments[1].toTensor(),
             arguments[2].toScalar());
}

Traced traceSub(at::ArrayRef<IValue> arguments) {
  return sum(arguments[0].toTensor(), arguments[1].toTensor(),
             -arguments[2].toScalar());
}

Tensor wrapped(const Tensor &value) {
  return at::functionalization::impl::to_functional_tensor(value);
}

Traced traceMask(at::ArrayRef<IValue> arguments) {
  const Tensor self = arguments[0].toTensor(), mask = arguments[1].toTensor();
  if (!isDense(self) || !isLazyCoo(mask) || !mask.is_coalesced() ||
      self.sizes() != mask.sizes() || mask.sparse_dim() == 0)
    return std::nullopt;
  std::vector<Tensor> parts = plainParts(mask);
  return lazyCoo(mask.sparse_dim(), mask.dense_dim(), self.sizes(),
                 {wrapped(parts[0].clone()),
                  wrapped(at::index(self, indicesOfDims(parts[0])))},
                 /*isCoalesced=*/true);
}

Traced traceClone(at::ArrayRef<IValue> arguments) {
  const Tensor self = arguments[0].toTensor();
  if (!arguments[1].isNone() &&
      arguments[1].toMemoryFormat() != at::MemoryFormat::Preserve)
    return std::nullopt;
  std::vector<Tensor> parts = plainParts(self);
  for (Tensor &part : parts)
    part = wrapped(part.clone());
  if (self.is_sparse())
    return lazyCoo(self.sparse_dim(), self.dense_dim(), self.sizes(), parts,
                   self.is_coalesced());
  return lazyCompressed(self.layout(), self.scalar_type(), self.sizes(), parts);
}

/// Traces the op if `trace` can, otherwise runs it by fallback.
template <Traced (*trace)(at::ArrayRef<IValue>)>
void tracedKernel(const OperatorHandle &op, Stack *stack) {
  const size_t count = op.schema().arguments().size();
  Traced result;
  {
    BelowFunctionalization below;
    result = trace(torch::jit::last(*stack, count));
  }
  if (!result)
    return runSparseFallback(op, *stack);
  torch::jit::drop(*stack, count);
  stack->emplace_back(std::move(*result));
}

template <Traced (*trace)(at::ArrayRef<IValue>)>
void registerTraced(const c10::OperatorName &name,
                    std::initializer_list<c10::DispatchKey> keys) {
  for (c10::DispatchKey key : keys)
    registerBoxedKernel(
        name, key,
        c10::KernelFunction::makeFromBoxedFunction<&tracedKernel<trace>>());
}

} // namespace

void torch_ltc::registerTracedSparseOps() {
  using enum c10::DispatchKey;
  registerTraced<traceMm>({"aten::mm", ""}, {SparseLazy, SparseCsrLazy});
  registerTraced<traceAddmm>({"aten::addmm", ""}, {SparseLazy, SparseCsrLazy});
  registerTraced<traceAdd>({"aten::add", "Tensor"}, {SparseLazy});
  registerTraced<traceSub>({"aten::sub", "Tensor"}, {SparseLazy});
  registerTraced<traceMask>({"aten::sparse_mask", ""}, {SparseLazy});
  registerTraced<traceClone>({"aten::clone", ""}, {SparseLazy, SparseCsrLazy});
}
