//===- indexing.cpp - Masked writes, one_hot ------------------------------===//
//
// `x[mask] = value` arrives as index_put with a boolean index. If all masked
// elements get the same value, no size depends on the mask, and the op is a
// `where`.
//
// `one_hot` checks that the class values of its operand are in range. torch's
// composite reads these values for the check, but only on the CPU. Here the
// program checks them; they are read only if the number of classes isn't given.
//
//===----------------------------------------------------------------------===//

#include "fallback/eager_fallback.h"
#include "graph/live_tensors.h"
#include "graph/torch_dispatch.h"
#include "ir/tensor_arguments.h"
#include "ops/checked_zero.h"
#include "ops/registration.h"
#include "tracing/boxed_kernels.h"
#include "tracing/trace.h"
#include "tracing/writing_call.h"

#include <ATen/Functions.h>
#include <ATen/ops/one_hot_native.h>

using namespace torch_ltc;
using c10::IValue;
using c10::OperatorHandle;
using torch::jit::Stack;

namespace {

/// Returns the mask if `indices` is one mask over the leading dims of `self`,
/// otherwise none.
std::optional<at::Tensor> onlyMask(const at::Tensor &self,
                                   const IValue &indices) {
  auto list = toOptionalTensors(indices);
  if (list.size() != 1 || !list[0] || !list[0]->defined())
    return std::nullopt;
  const at::Tensor &mask = *list[0];
  if (mask.scalar_type() != at::kBool || !mask.device().is_lazy() ||
      mask.dim() > self.dim() ||
      mask.sizes() != self.sizes().slice(0, size_t(mask.dim())))
    return std::nullopt;
  return mask;
}

void indexPut(const OperatorHandle &op, Stack *stack) {
  static const OpRecord &record = getOpRecord("aten::index_put");
  auto arguments = torch::jit::last(*stack, 4);
  const at::Tensor &self = arguments[0].toTensor();
  const at::Tensor &values = arguments[2].toTensor();
  std::optional<at::Tensor> mask = onlyMask(self, arguments[1]);
  bool accumulate = arguments[3].toBool();
  if (auto reason = reasonForFallback(record.name, record.emitName))
    return runFallback(op, *stack, reason);

  at::Tensor result;
  if (mask && values.numel() == 1 && !accumulate &&
      values.scalar_type() == self.scalar_type()) {
    std::vector<int64_t> sizes = mask->sizes().vec();
    sizes.resize(size_t(self.dim()), 1);
    at::Tensor wide = traceOp("aten::view_copy", {*mask, IValue(sizes)});
    at::Tensor value = values;
    if (values.device().is_lazy())
      value =
          traceOp("aten::view_copy", {values, IValue(std::vector<int64_t>())});
    result = traceOp("aten::where.self", {wide, value, self});
  } else {
    result = traceOp(record, arguments)[0];
  }
  torch::jit::drop(*stack, 4);
  stack->emplace_back(std::move(result));
}

const char *const kNegative = "Class values must be non-negative.";
const char *const kTooLarge = "Class values must be smaller than num_classes.";

at::Tensor oneHot(const at::Tensor &self, int64_t numClasses) {
  if (!isLazyWrapper(self) || hasTorchDispatch(self) ||
      self.scalar_type() != at::kLong || self.numel() == 0)
    return at::native::one_hot(self, numClasses);
  at::Tensor classes = self;
  if (numClasses == -1) {
    at::Tensor ends = at::stack({self.min(), self.max()}).cpu();
    TORCH_CHECK(ends[0].item<int64_t>() >= 0, kNegative);
    numClasses = ends[1].item<int64_t>() + 1;
  } else {
    TORCH_CHECK(numClasses > 0, kTooLarge);
    classes = classes + checkedZero(self.ge(0), kNegative);
    classes = classes + checkedZero(self.lt(numClasses), kTooLarge);
  }
  std::vector<int64_t> sizes = self.sizes().vec();
  sizes.push_back(numClasses);
  return at::zeros(sizes, self.options()).scatter(-1, classes.unsqueeze(-1), 1);
}

} // namespace

void torch_ltc::registerOneHot() { registerComposite<oneHot>("one_hot"); }

void torch_ltc::registerIndexingKernels(torch::Library &library) {
  library.impl("index_put",
               torch::CppFunction::makeFromBoxedFunction<&indexPut>());
}
