//===- meta_shortcuts.cpp - Fast Meta kernels of in-place ops -------------===//
//
// Functionalization runs every in-place op on Meta tensors as well, to find
// errors in shapes. Meta kernels are written in Python once torch is imported
// (torch 2.13): an `addcdiv_` took 220 us, and optimizers consist of in-place
// ops. If the arguments are plain Meta tensors that broadcast to `self` and
// whose type can be cast to its dtype, the result is `self`; all other calls,
// including errors, go to the previous kernel.
//
//===----------------------------------------------------------------------===//

#include "eager_semantics/in_place.h"
#include "eager_semantics/registration.h"
#include "tracing/boxed_kernels.h"
#include "tracing/trace.h"

#include <ATen/core/Tensor.h>

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

class InPlaceMeta final : public c10::OperatorKernel {
public:
  InPlaceMeta(const OpRecord &functional, c10::SafeKernelFunction previous)
      : functional(functional), previous(std::move(previous)) {}

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
  c10::SafeKernelFunction previous;
};

/// In-place draws from a generator, which torch's Python rejects for Meta
/// tensors (2.13). Errors in the arguments are found when the numbers are
/// drawn.
class DrawMeta final : public c10::OperatorKernel {
public:
  explicit DrawMeta(c10::SafeKernelFunction previous)
      : previous(std::move(previous)) {}

  void operator()(const OperatorHandle &op, c10::DispatchKeySet keys,
                  Stack *stack) {
    size_t numArguments = op.schema().arguments().size();
    const c10::IValue &self = torch::jit::peek(*stack, 0, numArguments);
    if (stack->back().isNone() || !isPlainMeta(self.toTensor()))
      return previous.callBoxed(op, keys, stack);
    torch::jit::drop(*stack, numArguments - 1); // self is the result
  }

private:
  c10::SafeKernelFunction previous;
};

} // namespace

void torch_ltc::registerMetaShortcuts() {
  for (const OpRecord &record : opRecords()) {
    std::optional<OperatorHandle> op = elementwiseInPlace(record);
    if (!op || !op->hasKernelForDispatchKey(DispatchKey::Meta))
      continue;
    registerAround<InPlaceMeta>(*op, DispatchKey::Meta, record);
  }
  for (const char *name : {"aten::exponential_", "aten::cauchy_",
                           "aten::log_normal_", "aten::geometric_"})
    registerAround<DrawMeta>(findOp({name, ""}), DispatchKey::Meta);
}
