//===- remembered_formula.cpp - Formulas in Python, run once --------------===//

#include "tracing/remembered_formula.h"
#include "graph/torch_dispatch.h"

#include "events/metrics.h"
#include "graph/live_tensors.h"
#include "ir/tensor_arguments.h"
#include "shape/strides.h"
#include "tracing/argument_walk.h"
#include "tracing/boxed_kernels.h"
#include "tracing/kind_of_call.h"
#include "tracing/trace.h"
#include "tracing/wrapped_value.h"
#include "tracing/writing_call.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <c10/core/impl/TorchDispatchModeTLS.h>

#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <utility>

using namespace torch_ltc;
using c10::IValue;
using c10::OperatorHandle;
using torch::jit::Stack;

thread_local CallCollector *torch_ltc::currentCollector = nullptr;

namespace {

/// Where a tensor comes from: result `result` of call `call`; or, if `call` is
/// kOperand or kConstant, the formula's operand or constant `result`.
struct Source {
  int32_t call = 0;
  uint32_t result = 0;
  /// The strides and offset of the tensor if they differ from its source's.
  std::optional<Geometry> geometry = std::nullopt;
};

constexpr int32_t kOperand = -1, kConstant = -2;

constexpr int32_t kNoElement = -1;

/// A tensor in a call's arguments.
struct Place {
  uint32_t argument;
  int32_t element; // the position in a list, or kNoElement
  Source source;
};

IValue copyOfList(const IValue &list) {
  if (list.isTensorList())
    return list.toTensorList().copy();
  return list.toOptionalTensorList().copy();
}

void setElement(IValue &list, int32_t element, at::Tensor tensor) {
  if (list.isTensorList())
    list.toTensorList().set(size_t(element), std::move(tensor));
  else
    list.toOptionalTensorList().set(size_t(element), std::move(tensor));
}

struct FormulaCall {
  const OpRecord *record;
  std::vector<IValue> arguments; // with undefined tensors at `places`
  std::vector<Place> places;

  /// Sets the tensors at `places`. Lists are copied, because they may be
  /// shared.
  template <typename Function> void set(Function tensorAt) {
    int64_t copied = -1;
    for (const Place &place : places) {
      IValue &argument = arguments[place.argument];
      if (place.element == kNoElement) {
        argument = tensorAt(place);
        continue;
      }
      if (std::exchange(copied, place.argument) != place.argument)
        argument = copyOfList(argument);
      setElement(argument, place.element, tensorAt(place));
    }
  }
};

struct FormulaCalls {
  std::vector<FormulaCall> calls;
  /// Tensors that the formula creates on the CPU, from sizes and numbers only.
  std::vector<at::Tensor> constants;
  std::vector<Source> results; // all of which are tensors
};
/// Null for a kind of call that isn't remembered.
using FormulaCallsPtr = std::shared_ptr<const FormulaCalls>;

/// Calls `function(tensor, argument, element)` for each tensor.
template <typename Function>
void forEachTensor(c10::ArrayRef<IValue> values, Function function) {
  for (size_t i = 0; i < values.size(); ++i) {
    if (values[i].isTensor())
      function(values[i].toTensor(), uint32_t(i), kNoElement);
    if (!values[i].isTensorList() && !isOptionalTensorList(values[i]))
      continue;
    auto elements = values[i].toListRef();
    for (size_t k = 0; k < elements.size(); ++k)
      if (elements[k].isTensor())
        function(elements[k].toTensor(), uint32_t(i), int32_t(k));
  }
}

} // namespace

/// Collects the calls that a formula traces.
class torch_ltc::CallCollector {
public:
  explicit CallCollector(c10::ArrayRef<IValue> operands)
      : readsBefore(HostData::numWaits()),
        fallbacksBefore(counterValue(Counter::fallback_calls)),
        outer(std::exchange(currentCollector, this)) {
    forEachTensor(operands, [&](const at::Tensor &tensor, uint32_t, int32_t) {
      add(tensor, {kOperand, numOperands++});
    });
    // If two operands have the same value, the formula isn't remembered,
    // because a copy of the value could come from either operand.
    for (const Known &a : tensors)
      for (const Known &b : tensors)
        if (a.data != b.data && hasSameValue(a, b))
          isWhole = false;
  }
  ~CallCollector() { currentCollector = outer; }

  void note(const OpRecord &record, c10::ArrayRef<IValue> arguments,
            const std::vector<at::Tensor> &results) {
    FormulaCall call;
    call.record = &record;
    call.arguments.assign(arguments.begin(), arguments.end());
    forEachTensor(arguments, [&](const at::Tensor &tensor, uint32_t argument,
                                 int32_t element) {
      if (!tensor.defined() || isConstant(tensor))
        return;
      if (std::optional<Source> source = find(tensor))
        call.places.push_back({argument, element, *source});
      else
        isWhole = false;
    });
    // The stored calls must not hold tensors: they would be computed and kept.
    call.set([](const Place &) { return at::Tensor(); });
    for (size_t i = 0; i < results.size(); ++i)
      if (results[i].defined())
        add(results[i], {int32_t(traced->calls.size()), uint32_t(i)});
    traced->calls.push_back(std::move(call));
  }

  /// Returns the calls, or null if the formula did anything besides tracing
  /// them.
  FormulaCallsPtr finish(c10::ArrayRef<IValue> results) {
    forEachTensor(results,
                  [&](const at::Tensor &tensor, uint32_t, int32_t element) {
                    std::optional<Source> source =
                        tensor.defined() ? find(tensor) : std::nullopt;
                    if (!source || element != kNoElement)
                      isWhole = false;
                    else
                      traced->results.push_back(*source);
                  });
    for (const IValue &result : results)
      isWhole = isWhole && result.isTensor();
    for (const Known &known : tensors)
      isWhole = isWhole && isUnchanged(known);
    isWhole = isWhole && HostData::numWaits() == readsBefore &&
              counterValue(Counter::fallback_calls) == fallbacksBefore;
    return isWhole ? traced : nullptr;
  }

private:
  struct Known {
    at::Tensor tensor;
    const TensorData *data;
    torch::lazy::Value value;
    HostDataPtr host; // null for a pending value
    Strides strides;
    int64_t offset;
    Source source;
  };

  /// Whether the tensor represents a number.
  static bool isConstant(const at::Tensor &tensor) {
    return tensor.device().is_cpu() && tensor.dim() == 0;
  }

  void add(const at::Tensor &tensor, Source source) {
    TensorDataPtr data = tensorDataOf(tensor);
    if (!data) {
      isWhole = false;
      return;
    }
    tensors.push_back({tensor, data.get(), data->value(), data->data(),
                       Strides(tensor.strides()), tensor.storage_offset(),
                       source});
  }

  static bool isUnchanged(const Known &known) {
    return hasGeometry(known.tensor, known) &&
           isSame(tensorDataOf(known.tensor)->value(), known.value);
  }
  static bool isSame(const torch::lazy::Value &a, const torch::lazy::Value &b) {
    return a.node == b.node && a.index == b.index;
  }
  static bool hasGeometry(const at::Tensor &tensor, const Known &known) {
    return tensor.strides() == at::IntArrayRef(known.strides) &&
           tensor.storage_offset() == known.offset &&
           tensor.sizes() == known.tensor.sizes();
  }

  std::optional<Source> find(const at::Tensor &tensor) {
    if (!tensor.device().is_lazy())
      return std::nullopt;
    TensorDataPtr data = tensorDataOf(tensor);
    for (const Known &known : tensors)
      if (known.data == data.get() && hasGeometry(tensor, known))
        return known.source;
    for (const Known &known : tensors) {
      if (!hasSameValue(*data, known))
        continue;
      if (tensor.sizes() != known.tensor.sizes() ||
          tensor.scalar_type() != known.tensor.scalar_type())
        return std::nullopt;
      Source source = known.source;
      source.geometry =
          Geometry{Strides(tensor.strides()), tensor.storage_offset()};
      return source;
    }
    return addConstant(tensor, *data);
  }

  static bool hasSameValue(const Known &a, const Known &b) {
    return a.host ? b.host && a.host->buffer() == b.host->buffer()
                  : isSame(a.value, b.value);
  }
  /// Compares computed values by their buffers, because tensors that share
  /// memory have different nodes.
  static bool hasSameValue(TensorData &data, const Known &known) {
    if (HostDataPtr host = data.data())
      return known.host && known.host->buffer() == host->buffer();
    return isSame(data.value(), known.value);
  }

  std::optional<Source> addConstant(const at::Tensor &tensor,
                                    TensorData &data) {
    if (data.isPending() || tensor.numel() > kMaxConstantElements)
      return std::nullopt;
    Source source{kConstant, uint32_t(traced->constants.size())};
    traced->constants.push_back(tensor);
    add(tensor, source);
    return source;
  }

  static constexpr int64_t kMaxConstantElements = 4096;

  const uint64_t readsBefore;
  const int64_t fallbacksBefore;
  CallCollector *outer;
  uint32_t numOperands = 0;
  bool isWhole = true;
  std::vector<Known> tensors;
  std::shared_ptr<FormulaCalls> traced = std::make_shared<FormulaCalls>();
};

void torch_ltc::collectCall(const OpRecord &record,
                            c10::ArrayRef<IValue> arguments,
                            const std::vector<at::Tensor> &results) {
  currentCollector->note(record, arguments, results);
}

namespace {

class FormulaMemory {
public:
  /// Returns nullopt for an unknown kind.
  std::optional<FormulaCallsPtr> find(const Hash128 &kind) {
    std::lock_guard<std::mutex> lock(mutex);
    auto found = formulas.find(kind);
    if (found == formulas.end())
      return std::nullopt;
    return found->second;
  }

  void store(const Hash128 &kind, FormulaCallsPtr traced) {
    std::lock_guard<std::mutex> lock(mutex);
    if (formulas.size() >= kMaxKinds)
      formulas.clear();
    formulas[kind] = std::move(traced);
  }

  static FormulaMemory &get() {
    static auto *memory = new FormulaMemory;
    return *memory;
  }

private:
  static constexpr size_t kMaxKinds = 1024;
  std::mutex mutex;
  std::unordered_map<Hash128, FormulaCallsPtr, Hash128Hasher> formulas;
};

/// Repeats the formula's calls. Replaces the arguments in `stack` by the
/// results.
void repeat(const FormulaCalls &traced, Stack &stack, size_t numArguments) {
  std::vector<at::Tensor> operands;
  forEachTensor(torch::jit::last(stack, numArguments),
                [&](const at::Tensor &tensor, uint32_t, int32_t) {
                  operands.push_back(tensor);
                });
  std::vector<std::vector<at::Tensor>> values;
  values.reserve(traced.calls.size());
  auto valueOf = [&](const Source &source) {
    const at::Tensor &tensor = source.call == kOperand ? operands[source.result]
                               : source.call == kConstant
                                   ? traced.constants[source.result]
                                   : values[size_t(source.call)][source.result];
    if (!source.geometry)
      return tensor;
    at::Tensor copy = withValueOf(tensor);
    setGeometry(copy, source.geometry->strides, source.geometry->offset);
    return copy;
  };
  for (const FormulaCall &call : traced.calls) {
    FormulaCall now = call;
    now.set([&](const Place &place) { return valueOf(place.source); });
    values.push_back(traceOp(*call.record, now.arguments));
  }
  torch::jit::drop(stack, numArguments);
  for (const Source &source : traced.results)
    stack.emplace_back(valueOf(source));
}

/// Wraps an op's kernel at key Lazy, a formula in Python, to run it only once
/// for each kind of call that can be remembered.
class RememberedFormula final : public KernelAround {
public:
  using KernelAround::KernelAround;

  void operator()(const OperatorHandle &op, c10::DispatchKeySet keys,
                  Stack *stack) {
    size_t numArguments = op.schema().arguments().size();
    if (isInsideTorchDispatch() || c10::impl::dispatch_mode_enabled())
      return previous.callBoxed(op, keys, stack);
    std::optional<Hash128> kind =
        hashKindOfCall(op, torch::jit::last(*stack, numArguments));
    if (!kind)
      return previous.callBoxed(op, keys, stack);
    std::optional<FormulaCallsPtr> known = FormulaMemory::get().find(*kind);
    if (known && *known)
      return repeat(**known, *stack, numArguments);
    if (known)
      return previous.callBoxed(op, keys, stack);
    CallCollector collector(torch::jit::last(*stack, numArguments));
    previous.callBoxed(op, keys, stack);
    FormulaMemory::get().store(
        *kind, collector.finish(
                   torch::jit::last(*stack, op.schema().returns().size())));
  }
};

/// Wraps an op's kernel at AutogradLazy. Calls without a gradient skip it: the
/// kernel at Lazy computes the same.
class WithoutGradient final : public KernelAround {
public:
  using KernelAround::KernelAround;

  void operator()(const OperatorHandle &op, c10::DispatchKeySet keys,
                  Stack *stack) {
    if (isDifferentiated(
            torch::jit::last(*stack, op.schema().arguments().size())))
      return previous.callBoxed(op, keys, stack);
    at::AutoDispatchBelowADInplaceOrView below;
    op.redispatchBoxed(keys & c10::after_ADInplaceOrView_keyset, stack);
  }

private:
  /// Whether the call needs a gradient, or a mode or a transform has to see the
  /// call.
  static bool isDifferentiated(c10::ArrayRef<IValue> values) {
    if (c10::impl::dispatch_mode_enabled() ||
        c10::impl::tls_is_dispatch_key_included(
            c10::DispatchKey::FuncTorchDynamicLayerFrontMode))
      return true;
    const bool isEnabled = c10::GradMode::is_enabled();
    return anyTensor(values, [isEnabled](const at::Tensor &tensor) {
      return !isLazyWrapper(tensor) || hasTorchDispatch(tensor) ||
             (isEnabled && tensor.requires_grad()) ||
             tensor._fw_grad(/*level=*/0).defined();
    });
  }
};

} // namespace

static std::unordered_set<c10::OperatorName> &opsWithFormulas() {
  static auto *names = new std::unordered_set<c10::OperatorName>;
  return *names;
}

bool torch_ltc::hasFormula(const OperatorHandle &op) {
  return opsWithFormulas().contains(op.operator_name());
}

void torch_ltc::rememberFormulas(const std::vector<std::string> &ops) {
  SilentRegistration silent;
  for (const std::string &name : ops) {
    OperatorHandle op = findOp(torch::jit::parseName(name));
    opsWithFormulas().insert(op.operator_name());
    registerAround<RememberedFormula>(op, c10::DispatchKey::Lazy);
    if (op.hasKernelForDispatchKey(c10::DispatchKey::AutogradLazy))
      registerAround<WithoutGradient>(op, c10::DispatchKey::AutogradLazy);
  }
}
