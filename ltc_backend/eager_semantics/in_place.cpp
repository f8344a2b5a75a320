//===- in_place.cpp - Ops that write their first operand ------------------===//
//
// Functionalization runs every in-place op on Meta tensors first, to find
// errors in the operands' sizes, and then replaces the first operand by the
// functional op's result, whatever the sizes and dtype of that result (torch
// 2.13). Some of torch's Python Meta kernels resize operands that eager
// rejects. The kernels in this file precede functionalization's: they compute
// the functional op's result themselves and compare its sizes and dtype with
// those of the operand. If these differ, the op runs eagerly, which writes or
// raises as eager does. A different dtype is allowed if the op is elementwise
// and its result can be cast (in_place.h).
//
//===----------------------------------------------------------------------===//

#include "eager_semantics/in_place.h"

#include "eager_semantics/memory_overlap.h"
#include "eager_semantics/registration.h"
#include "events/guards.h"
#include "graph/live_tensors.h"
#include "graph/torch_dispatch.h"
#include "shape/strides.h"
#include "tracing/boxed_kernels.h"
#include "tracing/trace.h"
#include "tracing/wrapped_value.h"
#include "tracing/writing_call.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/ExpandUtils.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <c10/core/impl/TorchDispatchModeTLS.h>

#include <mutex>

using namespace torch_ltc;
using c10::DispatchKey;
using c10::IValue;
using c10::OperatorHandle;
using torch::jit::Stack;

namespace {

/// Whether `tensor` is a dense lazy tensor in a functional wrapper, as users
/// hold it: not a subclass, and not a wrapper around a fake tensor, with which
/// AOTAutograd traces.
bool isDense(const at::Tensor &tensor) {
  return isLazyWrapper(tensor) && !hasTorchDispatch(tensor) &&
         tensor.layout() == c10::kStrided;
}

/// Raises eager's error for a call that eager rejects whatever the sizes and
/// values of the tensors, unless these are empty. A stand-in has one element.
/// It has the rank of the tensor if `keepsRank`: the result's dtype depends on
/// which tensors have rank 0.
void raiseAsEager(const OperatorHandle &op, c10::ArrayRef<IValue> arguments,
                  bool keepsRank) {
  Stack standIns(arguments.begin(), arguments.end());
  for (IValue &argument : standIns)
    argument = mapTensors(argument, [&](const at::Tensor &tensor) {
      auto options = tensor.options().device(at::kCPU);
      if (tensor.numel() == 0)
        return at::zeros(tensor.sizes(), options);
      size_t rank = keepsRank ? size_t(tensor.dim()) : 1;
      at::Tensor standIn = at::zeros(std::vector<int64_t>(rank, 1), options);
      if (rank == 0 && tensor.unsafeGetTensorImpl()->is_wrapped_number())
        standIn.unsafeGetTensorImpl()->set_wrapped_number(true);
      return standIn;
    });
  op.redispatchBoxed(c10::DispatchKeySet(DispatchKey::CPU), &standIns);
}

class InPlaceKernel final : public KernelAround {
public:
  InPlaceKernel(OperatorHandle functional, std::string name,
                c10::SafeKernelFunction previous)
      : KernelAround(std::move(previous)), functional(functional),
        name(std::move(name)),
        record(findOpRecord(textOf(functional.operator_name()))),
        isElementwise(record && elementwiseInPlace(*record)),
        isChecked(isElementwise && !record->overlaps) {}

  void operator()(const OperatorHandle &op, c10::DispatchKeySet keys,
                  Stack *stack) {
    auto arguments = torch::jit::last(*stack, op.schema().arguments().size());
    const at::Tensor &self = arguments[0].toTensor();
    if (!isDense(self)) {
      checkWrittenDevice(self, arguments, name);
      return previous.callBoxed(op, keys, stack);
    }
    if (isChecked)
      checkOverlaps(self, arguments);
    // Eager's kernel reads what it has written to an earlier element.
    if (!hasSymbolicSizes(self) && !self.is_contiguous() &&
        mayOverlap(self.sizes(), self.strides()))
      return runWritingCall(op, *stack,
                            "elements of the written tensor share memory");
    bool fits = isElementwise && fitsInPlace(*record, arguments, &isDense);
    at::Tensor written = self;
    at::Tensor value;
    try {
      value = newValue(arguments);
    } catch (const std::exception &) {
      if (isForbidden(Forbidden::fallback))
        throw;
      return runWritingCall(op, *stack, "rejected by the functional op");
    }
    // As in eager, errors about operands and sizes precede those about dtypes.
    if (!fits && record && value.sizes() == self.sizes())
      checkDType(op, arguments);
    if (!fits && (value.sizes() != self.sizes() ||
                  value.scalar_type() != self.scalar_type())) {
      value.reset(); // so that it isn't computed
      return runWritingCall(op, *stack,
                            "a result of a different size or dtype");
    }
    torch::jit::drop(*stack, arguments.size());
    if (fits)
      setValue(written, value);
    else
      writeResult(written, std::move(value));
    stack->emplace_back(std::move(written));
  }

private:
  void checkDType(const OperatorHandle &op,
                  c10::ArrayRef<IValue> arguments) const {
    try {
      checkResultFits(*record, arguments,
                      arguments[0].toTensor().scalar_type());
    } catch (const c10::Error &) {
      if (isElementwise)
        raiseAsEager(op, arguments, /*keepsRank=*/true); // with its message
      throw;
    }
  }

  void checkOverlaps(const at::Tensor &self,
                     c10::ArrayRef<IValue> arguments) const {
    checkWrittenOnce(self, name);
    for (const IValue &argument : arguments.slice(1))
      if (argument.isTensor())
        checkRead(self, argument.toTensor(), Overlap::Part, name);
  }

  at::Tensor newValue(c10::ArrayRef<IValue> arguments) const {
    Stack stack(arguments.begin(), arguments.end());
    // A composite may write through views, which needs functionalization.
    if (functional.hasKernelForDispatchKey(
            DispatchKey::CompositeImplicitAutograd)) {
      functional.callBoxed(&stack);
      return valueOf(stack[0].toTensor());
    }
    for (IValue &argument : stack)
      argument = mapTensors(argument, [](const at::Tensor &tensor) {
        return isLazyWrapper(tensor) ? valueOf(tensor) : tensor;
      });
    c10::impl::ExcludeDispatchKeyGuard guard(DispatchKey::Functionalize);
    if (record)
      noteInPlace(*record);
    functional.callBoxed(&stack);
    return std::move(stack[0]).toTensor();
  }

  OperatorHandle functional;
  std::string name;
  const OpRecord *record; // of the functional op, if it has one
  bool isElementwise;
  bool isChecked;
};

/// The kernel of `copy_`. Unlike functionalization's (torch 2.13), it doesn't
/// run the op on Meta tensors.
class CopyKernel final : public KernelAround {
public:
  explicit CopyKernel(c10::SafeKernelFunction previous)
      : KernelAround(std::move(previous)),
        functional(findOp({"aten::copy", ""})) {}

  void operator()(const OperatorHandle &op, c10::DispatchKeySet keys,
                  Stack *stack) {
    auto arguments = torch::jit::last(*stack, op.schema().arguments().size());
    const at::Tensor self = arguments[0].toTensor();
    const at::Tensor source = arguments[1].toTensor();
    bool isSourceLazy = isLazyWrapper(source);
    if (!isLazyWrapper(self) || !(isSourceLazy || isCpuMemory(source)) ||
        c10::impl::dispatch_mode_enabled() || hasSymbolicSizes(self) ||
        hasSymbolicSizes(source) ||
        !at::is_expandable_to(source.sizes(), self.sizes()))
      return previous.callBoxed(op, keys, stack);
    Stack inside{valueOf(self), isSourceLazy ? valueOf(source) : source,
                 arguments[2]};
    {
      c10::impl::ExcludeDispatchKeyGuard guard(DispatchKey::Functionalize);
      functional.callBoxed(&inside);
    }
    torch::jit::drop(*stack, arguments.size());
    setValue(self, inside[0].toTensor());
    stack->emplace_back(self);
  }

private:
  static bool isCpuMemory(const at::Tensor &tensor) {
    return tensor.defined() && tensor.device().is_cpu() &&
           tensor.layout() == c10::kStrided && !tensor.is_quantized() &&
           !hasTorchDispatch(tensor) &&
           !tensor.key_set().has(DispatchKey::Functionalize);
  }

  OperatorHandle functional;
};

/// Restores the state of a call's generator at the end of a scope.
class KeptGenerator {
public:
  explicit KeptGenerator(c10::ArrayRef<IValue> arguments)
      : generator(at::detail::getDefaultCPUGenerator()) {
    for (const IValue &argument : arguments)
      if (argument.isGenerator())
        generator = argument.toGenerator();
    std::lock_guard<std::mutex> lock(generator.mutex());
    state = generator.get_state();
  }
  ~KeptGenerator() {
    std::lock_guard<std::mutex> lock(generator.mutex());
    generator.set_state(state);
  }
  KeptGenerator(const KeptGenerator &) = delete;
  KeptGenerator &operator=(const KeptGenerator &) = delete;

private:
  at::Generator generator;
  at::Tensor state;
};

/// Wraps in-place ops that generate random numbers. Preserves the strides of
/// the tensor: functionalization (torch 2.13) replaces those of a tensor that
/// isn't a view by dense ones. Raises eager's error for arguments that the op
/// rejects (mostly integer tensors), instead of the error of torch's Python
/// formulas.
class DrawInPlaceKernel final : public KernelAround {
public:
  using KernelAround::KernelAround;

  void operator()(const OperatorHandle &op, c10::DispatchKeySet keys,
                  Stack *stack) {
    auto arguments = torch::jit::last(*stack, op.schema().arguments().size());
    Stack given(arguments.begin(), arguments.end());
    const at::Tensor &self = given[0].toTensor();
    Strides strides(self.strides());
    const size_t begin = stack->size() - given.size();
    try {
      previous.callBoxed(op, keys, stack);
    } catch (const std::exception &) {
      if (!isDense(self))
        throw;
      KeptGenerator kept(given); // the call below may draw again
      raiseAsEager(op, given, /*keepsRank=*/false);
      if (self.numel())
        throw;
      stack->resize(begin); // nothing is drawn
      stack->emplace_back(self);
    }
    if (!isLazyWrapper(self))
      return;
    at::Tensor value = valueOf(self);
    if (value.strides() == strides &&
        value.is_inference() == self.is_inference())
      return;
    value = withValueOf(value);
    setGeometry(value, strides);
    setValue(self, value);
  }
};

/// Wraps `rrelu_with_noise`, whose result is row-major. The functional op that
/// functionalization calls preserves the operand's order (torch 2.13).
class RowMajorResult final : public KernelAround {
public:
  using KernelAround::KernelAround;

  void operator()(const OperatorHandle &op, c10::DispatchKeySet keys,
                  Stack *stack) {
    previous.callBoxed(op, keys, stack);
    const at::Tensor &result = stack->back().toTensor();
    if (isLazyWrapper(result) && !hasPackedStrides(result))
      setValue(result, withValueOf(valueOf(result)));
  }
};

/// Whether the op only writes values into its first argument, and returns that
/// argument.
bool writesSelf(const OperatorHandle &op) {
  const c10::FunctionSchema &schema = op.schema();
  if (!op.hasTag(at::Tag::inplace) || schema.returns().size() != 1 ||
      schema.returns()[0].type()->kind() != c10::TypeKind::TensorType ||
      op.hasTag(at::Tag::inplace_view))
    return false;
  const auto &arguments = schema.arguments();
  for (size_t i = 0; i < arguments.size(); ++i)
    if ((arguments[i].alias_info() != nullptr) != (i == 0))
      return false;
  // These ops have separate kernels; `copy_` checks its operands itself.
  const std::string &name = op.operator_name().name;
  return name != "aten::copy_" && name != "aten::_resize_output_";
}

} // namespace

void torch_ltc::registerInPlaceKernels(const AtenOps &ops) {
  SilentRegistration silence;
  registerAround<CopyKernel>(findOp({"aten::copy_", ""}),
                             DispatchKey::Functionalize);
  registerAround<RowMajorResult>(findOp({"aten::rrelu_with_noise", ""}),
                                 DispatchKey::Functionalize);
  for (const OperatorHandle &op : ops) {
    if (op.hasKernelForDispatchKey(DispatchKey::CompositeImplicitAutograd) ||
        !writesSelf(op))
      continue;
    // The result of an in-place op that generates random numbers always has the
    // sizes of the first operand.
    if (drawsNumbers(op)) {
      registerAround<DrawInPlaceKernel>(op, DispatchKey::Functionalize);
      continue;
    }
    std::optional<OperatorHandle> functional = functionalOf(op);
    if (functional)
      registerAround<InPlaceKernel>(op, DispatchKey::Functionalize, *functional,
                                    textOf(op.operator_name()));
  }
}
