//===- grouped_products.cpp - Products of groups of rows ------------------===//
//
// A mixture of experts multiplies the rows of each expert by the expert's
// matrix. The number of rows of each expert is data, but the sizes of the
// result don't depend on it:
//
//   [rows, k] x [groups, k, n] -> [rows, n]         rows in groups
//   [groups, m, k] x [k, columns] -> [m, columns]   columns in groups
//   [m, k] x [k, n] -> [groups, m, n]               k in groups
//   [groups, m, k] x [groups, k, n] -> [groups, m, n]
//
// PyTorch's kernel rejects operands whose rows (or columns, if the operand is
// transposed) aren't multiples of 16 bytes. The operands of a program's
// commands are row-major, so the op that is traced has a kernel of its own.
//
//===----------------------------------------------------------------------===//

#include "fallback/eager_fallback.h"
#include "ops/optional_tensor.h"
#include "ops/registration.h"
#include "tracing/trace.h"

#include <ATen/Functions.h>
#include <torch/library.h>

#include <algorithm>

using namespace torch_ltc;
using at::Tensor;
using c10::IValue;

namespace {

constexpr const char *opName = "torch_ltc::grouped_mm";
constexpr int64_t kAlignedBytes = 16;

at::DimVector sizesOfResult(const Tensor &self, const Tensor &mat2,
                            const OptionalTensor &ends) {
  at::DimVector sizes;
  if (self.dim() == mat2.dim())
    sizes.push_back(self.dim() == 2 ? ends->size(0) : self.size(0));
  sizes.push_back(self.size(-2));
  sizes.push_back(mat2.size(-1));
  return sizes;
}

/// The op's kernel on the CPU, for eager calls and for host calls of programs.
Tensor groupedProducts(const Tensor &self, const Tensor &mat2,
                       const OptionalTensor &ends) {
  if (!exists(ends))
    return at::bmm(self, mat2);
  // Rows after the last group, which eager doesn't initialize, are zero.
  Tensor result = at::zeros(sizesOfResult(self, mat2, ends), self.options());
  Tensor numbers = ends->contiguous();
  const int32_t *end = numbers.const_data_ptr<int32_t>();
  int64_t begin = 0;
  for (int64_t group = 0; group < numbers.size(0); ++group) {
    auto part = [&](const Tensor &tensor, int64_t dim) {
      return tensor.slice(dim, begin, end[group]);
    };
    Tensor left =
        self.dim() == 3 ? self[group] : part(self, mat2.dim() == 3 ? 0 : 1);
    Tensor right =
        mat2.dim() == 3 ? mat2[group] : part(mat2, self.dim() == 3 ? 1 : 0);
    Tensor written = result.dim() == 3 ? result[group]
                                       : part(result, self.dim() == 3 ? 1 : 0);
    at::mm_out(written, left, right);
    begin = end[group];
  }
  return result;
}

Tensor groupedProductsMeta(const Tensor &self, const Tensor &mat2,
                           const OptionalTensor &ends) {
  return at::empty(sizesOfResult(self, mat2, ends), self.options());
}

TORCH_LIBRARY_FRAGMENT(torch_ltc, library) {
  library.def("grouped_mm(Tensor self, Tensor mat2, Tensor? offs) -> Tensor");
  library.impl("grouped_mm",
               torch::dispatch(c10::DispatchKey::CompositeExplicitAutograd,
                               TORCH_FN(groupedProducts)));
  library.impl("grouped_mm", torch::dispatch(c10::DispatchKey::Meta,
                                             TORCH_FN(groupedProductsMeta)));
}

/// Whether PyTorch's kernel accepts the strides of the matrices in `tensor`,
/// which may be transposed.
bool hasAlignedStrides(const Tensor &tensor) {
  int64_t aligned = kAlignedBytes / tensor.element_size();
  int64_t row = tensor.stride(-2), column = tensor.stride(-1);
  if (row == 1 && column >= std::max<int64_t>(1, tensor.size(-2)))
    return column % aligned == 0;
  return column == 1 && row >= std::max<int64_t>(1, tensor.size(-1)) &&
         row % aligned == 0;
}

bool isOperand(const Tensor &tensor) {
  at::ScalarType dtype = tensor.scalar_type();
  return (tensor.dim() == 2 || tensor.dim() == 3) &&
         (dtype == at::kFloat || dtype == at::kBFloat16 || dtype == at::kHalf);
}

/// Whether `ends`, if the op needs it, has an end for each group.
bool hasGroups(const Tensor &self, const Tensor &mat2,
               const OptionalTensor &ends) {
  if (self.dim() == 3 && mat2.dim() == 3)
    return !exists(ends) && self.size(0) == mat2.size(0);
  if (!exists(ends) || ends->dim() != 1 || ends->scalar_type() != at::kInt)
    return false;
  const Tensor &batch = self.dim() == 3 ? self : mat2;
  return batch.dim() == 2 || batch.size(0) == ends->size(0);
}

/// Whether eager accepts the arguments, and returns a row-major result. (It
/// pads rows to a multiple of 16 bytes.)
bool isTraced(const Tensor &self, const Tensor &mat2,
              const OptionalTensor &ends, const OptionalTensor &bias,
              std::optional<at::ScalarType> dtype) {
  return isOperand(self) && isOperand(mat2) && !exists(bias) &&
         self.scalar_type() == mat2.scalar_type() &&
         dtype.value_or(self.scalar_type()) == self.scalar_type() &&
         self.size(-1) == mat2.size(-2) && hasGroups(self, mat2, ends) &&
         hasAlignedStrides(self) && hasAlignedStrides(mat2) &&
         mat2.size(-1) * mat2.element_size() % kAlignedBytes == 0;
}

/// The kernel of `_grouped_mm` for lazy tensors.
Tensor tracedProducts(const Tensor &self, const Tensor &mat2,
                      const OptionalTensor &ends, const OptionalTensor &bias,
                      std::optional<at::ScalarType> dtype) {
  static const c10::OperatorHandle op =
      c10::Dispatcher::singleton().findSchemaOrThrow("aten::_grouped_mm", "");
  const OpRecord &record = getOpRecord(opName);
  const char *reason = reasonForFallback("aten::_grouped_mm", record.emitName);
  if (!reason && !isTraced(self, mat2, ends, bias, dtype))
    reason = "matrices whose rows aren't multiples of 16 bytes, or arguments "
             "that eager rejects";
  if (!reason)
    return traceOp(opName,
                   {self, mat2, exists(ends) ? IValue(*ends) : IValue()});
  torch::jit::Stack stack = {self, mat2, ends, bias, dtype};
  runFallback(op, stack, reason);
  return stack[0].toTensor();
}

} // namespace

void torch_ltc::registerGroupedProducts(torch::Library &library) {
  library.impl("_grouped_mm", TORCH_FN(tracedProducts));
}
