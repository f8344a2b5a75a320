//===- lists.cpp - Ops that return lists of tensors -----------------------===//
//
// A list is traced as its elements (slices and selections), so that nodes have
// a fixed number of results.
//
//===----------------------------------------------------------------------===//

#include "ops/registration.h"
#include "shape/infer_shapes.h"
#include "tracing/boxed_kernels.h"
#include "tracing/trace.h"
#include "tracing/writing_call.h"

#include <numeric>

using namespace torch_ltc;
using c10::IValue;

namespace {

int64_t checkedDim(const at::Tensor &self, int64_t dim) {
  return c10::maybe_wrap_dim(dim, self.dim());
}

at::Tensor slice(const at::Tensor &self, int64_t dim, int64_t start,
                 int64_t end) {
  return traceOp("aten::slice_copy.Tensor",
                 {self, IValue(dim), IValue(start), IValue(end), IValue(1)});
}

std::vector<at::Tensor> splitWithSizes(const at::Tensor &self,
                                       c10::SymIntArrayRef sizes, int64_t dim) {
  TORCH_CHECK(self.dim() != 0, "split expects at least a 1-dimensional tensor");
  dim = checkedDim(self, dim);
  auto lengths = C10_AS_INTARRAYREF_SLOW(sizes);
  int64_t total = std::accumulate(lengths.begin(), lengths.end(), int64_t(0));
  TORCH_CHECK(total == self.size(dim),
              "split_with_sizes expects split_sizes to sum exactly to ",
              self.size(dim), " (input tensor's size at dimension ", dim,
              "), but got split_sizes=", lengths);
  std::vector<at::Tensor> results;
  int64_t start = 0;
  for (int64_t length : lengths) {
    TORCH_CHECK(length >= 0,
                "split_with_sizes expects split_sizes have only "
                "non-negative entries, but got split_sizes=",
                lengths);
    results.push_back(slice(self, dim, start, start + length));
    start += length;
  }
  return results;
}

std::vector<at::Tensor> split(const at::Tensor &self, c10::SymInt splitSize,
                              int64_t dim) {
  TORCH_CHECK(self.dim() != 0, "split expects at least a 1-dimensional tensor");
  dim = checkedDim(self, dim);
  int64_t length = splitSize.expect_int(), extent = self.size(dim);
  TORCH_CHECK(length > 0 || (length == 0 && extent == 0),
              "split expects split_size be positive (or 0 for an empty "
              "dimension), but got split_size=",
              length);
  std::vector<at::Tensor> results;
  int64_t start = 0;
  do {
    int64_t end = std::min(start + length, extent);
    results.push_back(slice(self, dim, start, end));
    start += length;
  } while (start < extent);
  return results;
}

std::vector<at::Tensor> unbind(const at::Tensor &self, int64_t dim) {
  dim = checkedDim(self, dim);
  std::vector<at::Tensor> results;
  for (int64_t i = 0; i < self.size(dim); ++i)
    results.push_back(
        traceOp("aten::select_copy.int", {self, IValue(dim), IValue(i)}));
  return results;
}

/// Wraps an op like `unsafe_split` at key Functionalize. The parts share memory
/// with the tensor. As in eager, they are views that `split` creates while
/// autograd's keys are excluded, so that autograd doesn't track them as views
/// (except in inference mode). A conjugate or negative view is copied first.
class PartsOfMemory final : public KernelAround {
public:
  PartsOfMemory(c10::OperatorHandle view, c10::SafeKernelFunction previous)
      : KernelAround(std::move(previous)), view(std::move(view)) {}

  void operator()(const c10::OperatorHandle &op, c10::DispatchKeySet keys,
                  torch::jit::Stack *stack) {
    size_t numArguments = op.schema().arguments().size();
    const at::Tensor &self =
        torch::jit::peek(*stack, 0, numArguments).toTensor();
    if (!isLazyWrapper(self) || self.is_conj() || self.is_neg())
      return previous.callBoxed(op, keys, stack);
    view.callBoxed(stack);
  }

private:
  c10::OperatorHandle view;
};

/// Wraps `tensor_split` with a tensor of indices: eager requires that it is a
/// CPU tensor, and a script for the CPU creates it on the same device as all
/// other tensors.
class IndicesOnCpu final : public KernelAround {
public:
  using KernelAround::KernelAround;

  void operator()(const c10::OperatorHandle &op, c10::DispatchKeySet keys,
                  torch::jit::Stack *stack) {
    c10::IValue &indices = torch::jit::peek(*stack, 1, 3);
    if (isLazyWrapper(indices.toTensor()))
      indices = indices.toTensor().cpu();
    previous.callBoxed(op, keys, stack);
  }
};

} // namespace

void torch_ltc::registerSplits() {
  SilentRegistration silence;
  registerAroundInAnyMode<IndicesOnCpu>(
      findOp({"aten::tensor_split", "tensor_indices_or_sections"}));
  for (auto [name, overload] :
       {std::pair("split", "Tensor"), std::pair("split_with_sizes", "")})
    registerAround<PartsOfMemory>(
        findOp({std::string("aten::unsafe_") + name, overload}),
        c10::DispatchKey::Functionalize,
        findOp({std::string("aten::") + name, overload}));
}

void torch_ltc::registerListKernels(torch::Library &library) {
  // The view ops themselves only arrive from calls below functionalization.
  library.impl("split_copy.Tensor", TORCH_FN(split));
  library.impl("split.Tensor", TORCH_FN(split));
  library.impl("unsafe_split.Tensor", TORCH_FN(split));
  library.impl("split_with_sizes_copy", TORCH_FN(splitWithSizes));
  library.impl("split_with_sizes", TORCH_FN(splitWithSizes));
  library.impl("unsafe_split_with_sizes", TORCH_FN(splitWithSizes));
  library.impl("unbind_copy.int", TORCH_FN(unbind));
  library.impl("unbind.int", TORCH_FN(unbind));
}
