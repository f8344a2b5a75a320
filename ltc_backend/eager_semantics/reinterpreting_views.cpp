//===- reinterpreting_views.cpp - Views of memory as another dtype --------===//
//
// Below functionalization, a view is an op that copies. Views with a different
// dtype, and conjugate and negative views, aren't in the op table. They run on
// the CPU, as views of a tensor with the user's strides.
//
//===----------------------------------------------------------------------===//

#include "eager_semantics/registration.h"
#include "events/op_error.h"
#include "fallback/eager_fallback.h"
#include "graph/live_tensors.h"
#include "tracing/boxed_kernels.h"

using namespace torch_ltc;
using c10::DispatchKey;
using c10::OperatorHandle;
using torch::jit::Stack;

namespace {

class ViewOnCpu final : public c10::OperatorKernel {
public:
  explicit ViewOnCpu(OperatorHandle view) : view(view) {}

  void operator()(const OperatorHandle &op, c10::DispatchKeySet, Stack *stack) {
    const at::Tensor self =
        torch::jit::peek(*stack, 0, op.schema().arguments().size()).toTensor();
    at::Tensor seen;
    runFallback(op, *stack, "not in the op table",
                [&](const OperatorHandle &, Stack &values) {
                  view.redispatchBoxed(c10::DispatchKeySet(DispatchKey::CPU),
                                       &values);
                  seen = values.back().toTensor();
                });
    int64_t bytes = self.storage_offset() * int64_t(self.element_size());
    checkOffset(self, seen, bytes);
    setGeometry(stack->back().toTensor(), seen.strides(),
                bytes / int64_t(seen.element_size()) + seen.storage_offset());
  }

private:
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
};

} // namespace

void torch_ltc::registerReinterpretingViews() {
  for (auto [name, overload] :
       {std::pair("_conj", ""), std::pair("_neg_view", ""),
        std::pair("view_as_real", ""), std::pair("view_as_complex", ""),
        std::pair("view", "dtype")}) {
    std::string view = "aten::" + std::string(name);
    for (const std::string &copy : {view, view + "_copy"})
      registerBoxedKernel(
          {copy, overload}, DispatchKey::Lazy,
          c10::KernelFunction::makeFromBoxedFunctor(
              std::make_unique<ViewOnCpu>(findOp({view, overload}))));
  }
}
