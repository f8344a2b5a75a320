//===- in_place.cpp - Elementwise ops that write their first operand ------===//
//
// Functionalisation runs every in-place op on Meta tensors first, to find what
// is wrong with the operands' sizes, and sees no memory that they share (torch
// 2.13). These kernels stand before it: they refuse what eager refuses to
// write, and where the operands broadcast to the first one, whose type the
// result fits into, they make its new value themselves, which costs a part of
// that. All else, errors included, is PyTorch's.
//
//===----------------------------------------------------------------------===//

#include "tracer/in_place.h"
#include "tracer/boxed_kernels.h"
#include "tracer/memory_overlap.h"
#include "tracer/registration.h"
#include "tracer/trace.h"
#include "tracer/wrapped_value.h"

#include <c10/core/impl/LocalDispatchKeySet.h>

using namespace torch_ltc;
using c10::DispatchKey;
using c10::IValue;
using c10::OperatorHandle;
using torch::jit::Stack;

namespace {

/// A dense lazy tensor as a user holds it, and nothing else.
bool isDense(const at::Tensor &tensor) {
  return tensor.defined() && tensor.device().is_lazy() &&
         tensor.key_set().has(DispatchKey::Functionalize) &&
         !tensor.key_set().has(DispatchKey::Python) &&
         tensor.layout() == c10::kStrided;
}

/// Ops that eager lets write an element twice: it gets the same each time, and
/// a value that is read from what is written is copied before.
bool repeats(const std::string &functional) {
  for (const char *name :
       {"aten::fill.", "aten::zero", "aten::masked_fill.", "aten::threshold"})
    if (functional.starts_with(name))
      return true;
  return false;
}

class InPlaceKernel final : public c10::OperatorKernel {
public:
  InPlaceKernel(const OpRecord &functional, std::string name,
                c10::SafeKernelFunction previous)
      : functional(functional), name(std::move(name)),
        isChecked(!repeats(functional.name)), previous(std::move(previous)) {}

  void operator()(const OperatorHandle &op, c10::DispatchKeySet keys,
                  Stack *stack) {
    auto arguments = torch::jit::last(*stack, functional.arguments.size());
    const at::Tensor &self = arguments[0].toTensor();
    if (!isDense(self)) {
      checkWrittenDevice(self, arguments, name);
      return previous.callBoxed(op, keys, stack);
    }
    if (isChecked)
      checkOverlaps(self, arguments);
    if (!fitsInPlace(functional, arguments, &isDense)) {
      // Not all of torch's Meta kernels look (`mul_`, 2.13).
      checkResultFits(functional, arguments, self.scalar_type());
      return previous.callBoxed(op, keys, stack);
    }
    at::Tensor written = self;
    at::Tensor value = newValue(arguments);
    torch::jit::drop(*stack, arguments.size());
    setValue(written, value);
    stack->emplace_back(std::move(written));
  }

private:
  void checkOverlaps(const at::Tensor &self,
                     c10::ArrayRef<IValue> arguments) const {
    checkWrittenOnce(self, name);
    for (const IValue &argument : arguments.slice(1))
      if (argument.isTensor())
        checkRead(self, argument.toTensor(), Overlap::Part, name);
  }

  at::Tensor newValue(c10::ArrayRef<IValue> arguments) const {
    Stack stack(arguments.begin(), arguments.end());
    for (IValue &argument : stack)
      if (argument.isTensor() && argument.toTensor().device().is_lazy())
        argument = valueOf(argument.toTensor());
    c10::impl::ExcludeDispatchKeyGuard guard(DispatchKey::Functionalize);
    noteInPlace(functional);
    functional.handle->callBoxed(&stack);
    return std::move(stack[0]).toTensor();
  }

  const OpRecord &functional;
  std::string name;
  bool isChecked;
  c10::SafeKernelFunction previous;
};

} // namespace

void torch_ltc::registerInPlaceKernels() {
  SilentRegistration silence;
  for (const OpRecord &record : opRecords()) {
    std::optional<OperatorHandle> op = elementwiseInPlace(record);
    if (!op ||
        op->hasKernelForDispatchKey(DispatchKey::CompositeImplicitAutograd))
      continue;
    registerAround<InPlaceKernel>(*op, DispatchKey::Functionalize, record,
                                  c10::toString(op->operator_name()));
  }
}
