//===- meta_shortcuts.cpp - In-place ops on Meta tensors, quickly ---------===//
//
// Functionalisation runs every in-place op on Meta tensors as well, to find
// errors in shapes. Meta kernels are Python once torch is imported
// (torch 2.13): that made an `addcdiv_` cost 220 us, and optimizers are
// in-place ops. When the arguments are plain Meta tensors that broadcast to
// `self` and whose type fits into it, the answer is `self`; everything else
// goes to the kernel that was there before, errors included.
//
//===----------------------------------------------------------------------===//

#include "events/op_error.h"
#include "ir/op_record.h"
#include "tracer/boxed_kernels.h"
#include "tracer/registration.h"
#include "tracer/trace.h"

#include <ATen/core/Tensor.h>
#include <ATen/native/TypeProperties.h>

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

bool isExpanded(const at::Tensor &tensor) {
  if (tensor.numel() == 0)
    return false;
  for (int64_t i = 0; i < tensor.dim(); ++i)
    if (tensor.stride(i) == 0 && tensor.size(i) > 1)
      return true;
  return false;
}

bool broadcastsTo(at::IntArrayRef from, at::IntArrayRef to) {
  if (from.size() > to.size())
    return false;
  size_t offset = to.size() - from.size();
  for (size_t i = 0; i < from.size(); ++i)
    if (from[i] != 1 && from[i] != to[offset + i])
      return false;
  return true;
}

class InPlaceMeta final : public c10::OperatorKernel {
public:
  InPlaceMeta(const OpRecord &functional, c10::SafeKernelFunction previous)
      : functional(functional), previous(std::move(previous)) {}

  void operator()(const OperatorHandle &op, c10::DispatchKeySet keys,
                  Stack *stack) {
    size_t numArguments = op.schema().arguments().size();
    noteInPlace(functional);
    refuseExpanded(torch::jit::last(*stack, numArguments)[0]);
    if (!isTrivial(torch::jit::last(*stack, numArguments)))
      return previous.callBoxed(op, keys, stack);
    torch::jit::drop(*stack, numArguments - 1); // self is the result
  }

private:
  /// torch's CPU kernels do; its Meta kernels don't look (torch 2.13).
  void refuseExpanded(const c10::IValue &self) const {
    TORCH_CHECK(functional.family != Family::elementwise || !self.isTensor() ||
                    !isPlainMeta(self.toTensor()) ||
                    !isExpanded(self.toTensor()),
                "unsupported operation: more than one element of the "
                "written-to tensor refers to a single memory location. Please "
                "clone() the tensor before performing the operation.",
                opSuffix(functional.name));
  }

  bool isTrivial(c10::ArrayRef<c10::IValue> arguments) const {
    if (!arguments[0].isTensor() || !isPlainMeta(arguments[0].toTensor()))
      return false;
    const at::Tensor &self = arguments[0].toTensor();
    at::native::ResultTypeState state;
    for (const c10::IValue &argument : arguments) {
      if (argument.isTensor()) {
        const at::Tensor &tensor = argument.toTensor();
        bool isNumber =
            tensor.defined() && tensor.device().is_cpu() && tensor.dim() == 0;
        if (!isNumber && (!isPlainMeta(tensor) ||
                          !broadcastsTo(tensor.sizes(), self.sizes())))
          return false;
        state = at::native::update_result_type_state(tensor, state);
      } else if (argument.isScalar()) {
        state =
            at::native::update_result_type_state(argument.toScalar(), state);
      } else if (argument.isTensorList() || argument.isOptionalTensorList()) {
        return false;
      }
    }
    c10::ScalarType type = at::native::result_type(state);
    if (functional.dtypeRule == DTypeRule::promote_floatDType &&
        c10::isIntegralType(type, /*includeBool=*/true))
      return false;
    return functional.dtypeRule == DTypeRule::selfDType ||
           c10::canCast(type, self.scalar_type());
  }

  const OpRecord &functional;
  c10::SafeKernelFunction previous;
};

/// In-place draws from a generator, which torch's Python refuses on Meta
/// tensors (2.13). What is wrong with the arguments is found when they are
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

/// "aten::add.Tensor" -> "aten::add_.Tensor".
c10::OperatorName inPlaceName(const OpRecord &record) {
  const c10::OperatorName &name = record.handle->operator_name();
  return {name.name + "_", name.overload_name};
}

} // namespace

void torch_ltc::registerMetaShortcuts() {
  for (const OpRecord &record : opRecords()) {
    bool elementwise = record.family == Family::elementwise ||
                       record.name == "aten::fill.Scalar" ||
                       record.name == "aten::zero";
    if (!elementwise)
      continue;
    auto op = c10::Dispatcher::singleton().findSchema(inPlaceName(record));
    if (!op || !op->hasKernelForDispatchKey(DispatchKey::Meta) ||
        op->schema().returns().size() != 1)
      continue;
    registerBoxedKernel(
        op->operator_name(), DispatchKey::Meta,
        c10::KernelFunction::makeFromBoxedFunctor(std::make_unique<InPlaceMeta>(
            record, op->getComputedKernelForDispatchKey(DispatchKey::Meta))));
  }
  for (const char *name : {"aten::exponential_", "aten::cauchy_",
                           "aten::log_normal_", "aten::geometric_"}) {
    auto op = c10::Dispatcher::singleton().findSchemaOrThrow(name, "");
    registerBoxedKernel(
        op.operator_name(), DispatchKey::Meta,
        c10::KernelFunction::makeFromBoxedFunctor(std::make_unique<DrawMeta>(
            op.getComputedKernelForDispatchKey(DispatchKey::Meta))));
  }
}
