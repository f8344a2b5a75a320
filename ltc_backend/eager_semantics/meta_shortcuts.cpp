//===- meta_shortcuts.cpp - Fast Meta kernels of in-place ops -------------===//
//
// Functionalization runs every in-place op on Meta tensors as well, to find
// errors in shapes. `import torch` replaces many Meta kernels by Python
// functions (torch 2.13): with them, an `addcdiv_` took 220 us, too long for
// optimizers, which consist of in-place ops. If the arguments are plain Meta
// tensors that broadcast to `self` and whose common dtype can be cast to that
// of `self`, the kernels in this file just return `self`; all other calls,
// including invalid ones, go to the previous kernel.
//
//===----------------------------------------------------------------------===//

#include "eager_semantics/in_place.h"
#include "eager_semantics/registration.h"
#include "tracing/boxed_kernels.h"
#include "tracing/trace.h"

#include <ATen/core/Tensor.h>
#include <limits>
#include <utility>

using namespace torch_ltc;
using c10::DispatchKey;
using c10::OperatorHandle;
using torch::jit::Stack;

namespace {

bool isPlainMeta(const at::Tensor &tensor) {
  return tensor.defined() && tensor.is_meta() &&
         !tensor.key_set().has_any(c10::DispatchKeySet(
             {DispatchKey::Python, DispatchKey::Functionalize})) &&
         !tensor.unsafeGetTensorImpl()->has_symbolic_sizes_strides();
}

class InPlaceMeta final : public KernelAround {
public:
  InPlaceMeta(const OpRecord &functional, c10::SafeKernelFunction previous)
      : KernelAround(std::move(previous)), functional(functional) {}

  void operator()(const OperatorHandle &op, c10::DispatchKeySet keys,
                  Stack *stack) {
    size_t numArguments = op.schema().arguments().size();
    noteInPlace(functional);
    if (!fitsInPlace(functional, torch::jit::last(*stack, numArguments),
                     &isPlainMeta))
      return previous.callBoxed(op, keys, stack);
    torch::jit::drop(*stack, numArguments - 1); // self is the result
  }

private:
  const OpRecord &functional;
};

/// The Meta kernel of in-place ops that generate random numbers. torch's
/// kernels (2.13) are in Python: they reject generators, and their first call
/// imports torch._dynamo, which takes a second. If the call has a generator,
/// `self` isn't a user's Meta tensor, and wrong arguments are found when the
/// numbers are generated. Otherwise `self` may be a user's Meta tensor, so
/// calls whose arguments may be wrong go to the previous kernel.
class DrawMeta final : public KernelAround {
public:
  /// The scale is the op's last number argument: a rate, a standard deviation
  /// or a probability. The kernel accepts scales between 0 and `maxScale`, both
  /// exclusive.
  DrawMeta(double maxScale, c10::SafeKernelFunction previous)
      : KernelAround(std::move(previous)), maxScale(maxScale) {}

  void operator()(const OperatorHandle &op, c10::DispatchKeySet keys,
                  Stack *stack) {
    size_t numArguments = op.schema().arguments().size();
    const at::Tensor &self =
        torch::jit::peek(*stack, 0, numArguments).toTensor();
    bool mayFail =
        stack->back().isNone() &&
        !(c10::isFloatingType(self.scalar_type()) &&
          isScale(torch::jit::peek(*stack, numArguments - 2, numArguments)));
    if (mayFail || !isPlainMeta(self))
      return previous.callBoxed(op, keys, stack);
    torch::jit::drop(*stack, numArguments - 1); // self is the result
  }

private:
  bool isScale(const c10::IValue &value) const {
    return value.isDouble() && value.toDouble() > 0 &&
           value.toDouble() < maxScale;
  }

  double maxScale;
};

} // namespace

void torch_ltc::registerMetaShortcuts() {
  for (const OpRecord &record : opRecords()) {
    std::optional<OperatorHandle> op = elementwiseInPlace(record);
    if (!op || !op->hasKernelForDispatchKey(DispatchKey::Meta))
      continue;
    registerAround<InPlaceMeta>(*op, DispatchKey::Meta, record);
  }
  constexpr double unbounded = std::numeric_limits<double>::infinity();
  const std::pair<const char *, double> draws[] = {
      {"aten::cauchy_", unbounded}, {"aten::exponential_", unbounded},
      {"aten::geometric_", 1},      {"aten::log_normal_", unbounded},
      {"aten::normal_", unbounded},
  };
  for (auto [name, maxScale] : draws)
    registerAround<DrawMeta>(findOp({name, ""}), DispatchKey::Meta, maxScale);
}
