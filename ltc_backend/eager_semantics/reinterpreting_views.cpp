//===- reinterpreting_views.cpp - Views of memory as another dtype --------===//
//
// Below functionalization, a view is an op that copies. Whether memory can be
// viewed as another dtype, and with which strides, is decided by PyTorch's own
// kernel on a Meta tensor of the user's strides. Conjugate and negative views
// are traced by the same kernels.
//
//===----------------------------------------------------------------------===//

#include "eager_semantics/registration.h"
#include "events/op_error.h"
#include "fallback/eager_fallback.h"
#include "graph/live_tensors.h"
#include "tracing/boxed_kernels.h"
#include "tracing/trace.h"

#include <ATen/ops/empty_strided.h>

using namespace torch_ltc;
using c10::DispatchKey;
using c10::OperatorHandle;
using torch::jit::Stack;

namespace {

class ReinterpretingView final : public c10::OperatorKernel {
public:
  ReinterpretingView(OperatorHandle view, const OpRecord &copy)
      : view(view), copy(copy) {}

  void operator()(const OperatorHandle &op, c10::DispatchKeySet, Stack *stack) {
    auto arguments = torch::jit::last(*stack, copy.arguments.size());
    const at::Tensor self = arguments[0].toTensor();
    at::Tensor seen = viewOfMeta(self, arguments);
    int64_t bytes = self.storage_offset() * int64_t(self.element_size());
    checkOffset(self, seen, bytes);
    if (auto reason = reasonForFallback(copy.name, copy.emitName)) {
      runFallback(op, *stack, reason);
    } else {
      at::Tensor result = traceOp(copy, arguments)[0];
      torch::jit::drop(*stack, copy.arguments.size());
      stack->emplace_back(std::move(result));
    }
    setGeometry(stack->back().toTensor(), seen.strides(),
                bytes / int64_t(seen.element_size()) + seen.storage_offset());
  }

private:
  /// Views a tensor without memory, whose storage begins at its first element.
  at::Tensor viewOfMeta(const at::Tensor &self,
                        c10::ArrayRef<c10::IValue> arguments) const {
    Stack stack(arguments.begin(), arguments.end());
    stack[0] = at::empty_strided(self.sizes(), self.strides(),
                                 self.options().device(c10::kMeta));
    view.redispatchBoxed(c10::DispatchKeySet(DispatchKey::Meta), &stack);
    return std::move(stack[0]).toTensor();
  }

  /// Raises eager's error if the view would begin inside an element. Eager's
  /// kernel doesn't raise it, because it gets CPU tensors without an offset.
  void checkOffset(const at::Tensor &self, const at::Tensor &seen,
                   int64_t bytes) const {
    const std::string &name = view.operator_name().name;
    const int64_t size = int64_t(seen.element_size());
    if (bytes % size == 0)
      return;
    TORCH_CHECK(name != "aten::view_as_complex",
                "Tensor must have a storage_offset divisible by 2",
                opSuffix(name));
    TORCH_CHECK(false, "self.storage_offset() must be divisible by ",
                size / int64_t(self.element_size()), " to view ",
                self.scalar_type(), " as ", seen.scalar_type(),
                " (different element sizes), but got ", self.storage_offset(),
                opSuffix(name));
  }

  OperatorHandle view;
  const OpRecord &copy;
};

} // namespace

void torch_ltc::registerReinterpretingViews() {
  for (auto [name, overload] :
       {std::pair("_conj", ""), std::pair("_neg_view", ""),
        std::pair("view_as_real", ""), std::pair("view_as_complex", ""),
        std::pair("view", "dtype")}) {
    const c10::OperatorName view{"aten::" + std::string(name), overload};
    const c10::OperatorName copy{view.name + "_copy", overload};
    const OpRecord &record = getOpRecord(textOf(copy));
    for (const c10::OperatorName &op : {view, copy})
      registerBoxedKernel(
          op, DispatchKey::Lazy,
          c10::KernelFunction::makeFromBoxedFunctor(
              std::make_unique<ReinterpretingView>(findOp(view), record)));
  }
}
