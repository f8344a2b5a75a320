//===- out_kernels.cpp - Ops that write into `out=` -----------------------===//
//
// Functionalization replaces `out` by the functional op's result (torch 2.13):
// `out` gets the result's strides, the result is cast to any dtype, and `out`
// is no longer a view. Eager writes into the existing `out`, resizes it with a
// warning if its sizes don't match, and has different rules about the dtypes of
// `out` for different ops. These kernels do the same; if they can't predict
// eager's behavior, the op runs eagerly.
//
//===----------------------------------------------------------------------===//

#include "eager_semantics/in_place.h"
#include "eager_semantics/memory_overlap.h"
#include "eager_semantics/registration.h"
#include "events/guards.h"
#include "graph/inference_tensors.h"
#include "graph/view_values.h"
#include "ir/op_record.h"
#include "shape/strides.h"
#include "tracing/boxed_kernels.h"
#include "tracing/wrapped_value.h"
#include "tracing/writing_call.h"

#include <ATen/ExpandUtils.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include <algorithm>
#include <mutex>
#include <unordered_map>

using namespace torch_ltc;
using at::Tensor;
using c10::DispatchKey;
using c10::IValue;
using c10::OperatorHandle;
using torch::jit::Stack;

namespace {

bool isList(const c10::Argument &argument) {
  return *argument.type() == *c10::ListType::ofTensors();
}

/// Number of trailing arguments that the op writes: tensors, or one list of
/// tensors. 0 if the op also writes other arguments.
size_t countOuts(const c10::FunctionSchema &schema) {
  const auto &arguments = schema.arguments();
  size_t begin = arguments.size();
  if (begin && arguments.back().is_out() && isList(arguments.back()))
    --begin;
  else
    while (begin > 0 && arguments[begin - 1].alias_info() &&
           arguments[begin - 1].is_out() &&
           arguments[begin - 1].type()->kind() == c10::TypeKind::TensorType)
      --begin;
  for (size_t i = 0; i < begin; ++i)
    if (arguments[i].alias_info())
      return 0;
  return arguments.size() - begin;
}

/// Whether `functional` has the arguments of `out` except the outputs, and
/// returns as many tensors as there are outputs.
bool isFunctionalOf(const c10::FunctionSchema &functional,
                    const c10::FunctionSchema &out, size_t numOuts) {
  if (functional.is_mutable() || functional.returns().size() != numOuts ||
      functional.arguments().size() + numOuts != out.arguments().size())
    return false;
  for (const c10::Argument &result : functional.returns())
    if (*result.type() != *out.arguments().back().type() || result.alias_info())
      return false;
  return std::equal(functional.arguments().begin(),
                    functional.arguments().end(), out.arguments().begin(),
                    [](const c10::Argument &x, const c10::Argument &y) {
                      return x.name() == y.name() && *x.type() == *y.type();
                    });
}

/// The functional form of the op `out`, if there is one.
std::optional<OperatorHandle> functionalOfOut(const OperatorHandle &out,
                                              size_t numOuts) {
  using Overloads = std::unordered_map<std::string, AtenOps>;
  static const auto *overloads = [] {
    auto *made = new Overloads;
    for (const OperatorHandle &op : atenOps())
      if (!op.schema().is_mutable())
        (*made)[op.operator_name().name].push_back(op);
    return made;
  }();
  std::optional<OperatorHandle> found;
  auto named = overloads->find(out.operator_name().name);
  if (named != overloads->end())
    for (const OperatorHandle &op : named->second)
      if (isFunctionalOf(op.schema(), out.schema(), numOuts))
        found = op;
  return found;
}

class OutKernel final : public KernelAround {
public:
  OutKernel(size_t numOuts, c10::SafeKernelFunction previous)
      : KernelAround(std::move(previous)), numOuts(numOuts) {}

  void operator()(const OperatorHandle &op, c10::DispatchKeySet keys,
                  Stack *stack) {
    size_t numArguments = op.schema().arguments().size();
    auto arguments = torch::jit::last(*stack, numArguments);
    auto inputs = arguments.slice(0, numArguments - numOuts);
    Stack written(arguments.end() - numOuts, arguments.end());
    std::vector<Tensor> outs = tensorsOf(written);
    for (const Tensor &out : outs)
      if (!isLazyWrapper(out)) {
        checkWrittenDevice(out, inputs, op.schema().name());
        return previous.callBoxed(op, keys, stack);
      }
    if (!outs.empty())
      checkReadDevices(outs[0], inputs, op.schema().name());
    ModeOfWritten mode(outs);
    std::call_once(isFunctionalFound, [&] { findFunctional(op); });
    if (!functional && writesList)
      return previous.callBoxed(op, keys, stack);
    if (!functional)
      return runWritingCall(op, *stack, "a constructor with out=");
    if (runsEagerly)
      return runWritingCall(op, *stack, "not in the op table");
    if (record && record->family == Family::elementwise)
      checkOverlaps(outs[0], inputs);
    std::vector<Tensor> results;
    try {
      results = call(inputs);
    } catch (const std::exception &) {
      if (isForbidden(Forbidden::fallback))
        throw;
      return runWritingCall(op, *stack, "rejected by the functional op");
    }
    if (copiesResult)
      for (const Tensor &out : outs)
        checkWrittenOnce(out, op.schema().name());
    if (std::string reason = whyEager(inputs, outs, results); !reason.empty()) {
      results.clear(); // so that they aren't computed
      return runWritingCall(op, *stack, reason);
    }
    for (size_t i = 0; i < outs.size(); ++i) {
      writeResult(outs[i], std::move(results[i]));
      // torch's kernels at key ADInplaceOrView don't count writes to the
      // tensors of a list (2.13).
      if (writesList && !outs[i].is_inference())
        outs[i].unsafeGetTensorImpl()->bump_version();
    }
    torch::jit::drop(*stack, numArguments);
    if (!op.schema().returns().empty())
      stack->insert(stack->end(), written.begin(), written.end());
  }

private:
  /// Finds the functional op at the kernel's first call, not at registration:
  /// few scripts call any of these ops, and comparing all schemas would delay
  /// the first lazy tensor.
  void findFunctional(const OperatorHandle &op) {
    writesList = isList(op.schema().arguments().back());
    copiesResult =
        op.hasKernelForDispatchKey(DispatchKey::CompositeExplicitAutograd);
    functional = functionalOfOut(op, numOuts);
    if (!functional)
      return;
    record = findOpRecord(textOf(functional->operator_name()));
    // An op without such a kernel may even read `out`, as
    // `_compute_linear_combination` does.
    runsEagerly =
        !record &&
        !functional->hasKernelForAnyDispatchKey(c10::DispatchKeySet(
            {DispatchKey::Lazy, DispatchKey::CompositeImplicitAutograd,
             DispatchKey::CompositeExplicitAutograd,
             DispatchKey::CompositeExplicitAutogradNonFunctional}));
  }

  /// The elements of `values`, which are tensors or one list of tensors.
  static std::vector<Tensor> tensorsOf(const Stack &values) {
    std::vector<Tensor> tensors;
    for (const IValue &value : values)
      if (value.isTensorList())
        for (const Tensor &tensor : value.toTensorVector())
          tensors.push_back(tensor);
      else
        tensors.push_back(value.toTensor());
    return tensors;
  }

  void checkOverlaps(const Tensor &out, c10::ArrayRef<IValue> inputs) const {
    checkWrittenOnce(out, record->name);
    for (const IValue &input : inputs)
      if (input.isTensor())
        checkRead(out, input.toTensor(), Overlap::Part, record->name);
  }

  std::vector<Tensor> call(c10::ArrayRef<IValue> inputs) const {
    Stack stack(inputs.begin(), inputs.end());
    // A composite may write through views, which needs functionalization, and a
    // kernel at key Functionalize may read the memory of a view.
    bool isAbove =
        functional->hasKernelForDispatchKey(
            DispatchKey::CompositeImplicitAutograd) ||
        functional->hasKernelForDispatchKey(DispatchKey::Functionalize);
    if (isAbove) {
      functional->callBoxed(&stack);
    } else {
      for (IValue &input : stack)
        input = mapTensors(input, [](const Tensor &tensor) {
          return isLazyWrapper(tensor) ? valueOf(tensor) : tensor;
        });
      c10::impl::ExcludeDispatchKeyGuard guard(DispatchKey::Functionalize);
      functional->callBoxed(&stack);
    }
    std::vector<Tensor> results = tensorsOf(stack);
    for (Tensor &result : results)
      if (isLazyWrapper(result))
        result = valueOf(result);
    return results;
  }

  /// Returns why only eager can determine the new `outs`; "" if they are
  /// predictable.
  std::string whyEager(c10::ArrayRef<IValue> inputs,
                       const std::vector<Tensor> &outs,
                       const std::vector<Tensor> &results) const {
    if (outs.size() != results.size())
      return "out= of another length";
    for (size_t i = 0; i < outs.size(); ++i) {
      const Tensor &out = outs[i], &result = results[i];
      if (!result.defined())
        return "a result that is undefined";
      if (out.scalar_type() != result.scalar_type() &&
          !castsResult(inputs, result.scalar_type(), out.scalar_type()))
        return "out= of another dtype";
      // Some ops resize to the strides of the functional op's result, some to
      // row-major strides, and some write into any tensor with as many
      // elements.
      if (out.sizes() != result.sizes() &&
          (writesList || out.numel() || !hasPackedStrides(result)))
        return "out= of another size";
    }
    return "";
  }

  /// Whether the op is known to cast its result to the dtype of `out`.
  bool castsResult(c10::ArrayRef<IValue> inputs, at::ScalarType result,
                   at::ScalarType dtype) const {
    if (record && record->castsOut)
      return c10::canCast(result, dtype);
    auto isTensor = [](const IValue &value) { return value.isTensor(); };
    // Ops that require all operands to have one dtype require it of `out`, too.
    return record && record->family == Family::elementwise &&
           record->shapeRule != ShapeRule::same_dtype_broadcastShape &&
           std::count_if(inputs.begin(), inputs.end(), isTensor) == 2 &&
           castsTo(*record, inputs, dtype);
  }

  std::once_flag isFunctionalFound;
  /// Null if no functional op has the same arguments.
  std::optional<OperatorHandle> functional;
  bool runsEagerly = false; // whether the functional op always falls back
  size_t numOuts;
  bool writesList = false;   // whether `out` is a list
  bool copiesResult = false; // whether eager copies the functional op's result
  const OpRecord *record = nullptr; // of the functional op, if it has one
};

/// Wraps random ops with `out=`. The previous kernel generates numbers of the
/// first tensor's dtype; eager generates numbers of the dtype of `out`, or
/// rejects that dtype.
class DrawingOutKernel final : public KernelAround {
public:
  DrawingOutKernel(const std::string &name, c10::SafeKernelFunction previous)
      : KernelAround(std::move(previous)),
        drawsPositions(name == "aten::multinomial"),
        broadcasts(name == "aten::normal") {}

  void operator()(const OperatorHandle &op, c10::DispatchKeySet keys,
                  Stack *stack) {
    auto arguments = torch::jit::last(*stack, op.schema().arguments().size());
    const Tensor &out = arguments.back().toTensor();
    at::ScalarType expected = out.scalar_type();
    if (drawsPositions)
      expected = at::kLong;
    else if (arguments.front().isTensor())
      expected = arguments.front().toTensor().scalar_type();
    else if (arguments.size() > 1 && arguments[1].isTensor())
      expected = arguments[1].toTensor().scalar_type();
    if (isLazyWrapper(out) && out.scalar_type() != expected)
      return runWritingCall(op, *stack, "out= of another dtype");
    // Eager generates numbers in the memory order of `out`. If `out` is an
    // empty part of memory, it grows in that memory.
    bool isEmptyPart = out.numel() == 0 && isLazyWrapper(out) &&
                       functionalMemory(out).base().numel() > 0;
    bool fitsOut = hasPackedStrides(out) && !isEmptyPart &&
                   (!broadcasts || fits(out, arguments));
    if (isLazyWrapper(out) && !fitsOut)
      return runWritingCall(op, *stack, "out= of a different size or layout");
    previous.callBoxed(op, keys, stack);
  }

private:
  /// Whether `out` has the sizes to which `normal`'s mean and deviation
  /// broadcast. If not, whether eager resizes, broadcasts or raises depends on
  /// which of the two is a tensor.
  static bool fits(const Tensor &out, c10::ArrayRef<IValue> arguments) {
    std::vector<int64_t> sizes;
    bool isSized = false;
    for (const IValue &argument : arguments.slice(0, 2)) {
      if (!argument.isTensor())
        continue;
      at::IntArrayRef other = argument.toTensor().sizes();
      if (isSized && !at::are_expandable(sizes, other))
        return false;
      sizes = isSized ? at::infer_size(sizes, other) : other.vec();
      isSized = true;
    }
    return !isSized || out.sizes() == sizes;
  }

  bool drawsPositions;
  bool broadcasts; // its mean with its deviation
};

} // namespace

void torch_ltc::registerOutKernels(const AtenOps &ops) {
  SilentRegistration silence;
  for (const OperatorHandle &op : ops) {
    size_t numOuts = countOuts(op.schema());
    if (!numOuts ||
        op.hasKernelForDispatchKey(DispatchKey::CompositeImplicitAutograd))
      continue;
    // OutKernel would generate random numbers twice if the op had to run
    // eagerly.
    if (drawsNumbers(op)) {
      if (numOuts == 1 && !isList(op.schema().arguments().back()))
        registerAround<DrawingOutKernel>(op, DispatchKey::Functionalize,
                                         op.operator_name().name);
      continue;
    }
    registerAround<OutKernel>(op, DispatchKey::Functionalize, numOuts);
  }
}
