//===- custom_ops.cpp - Ops that others define and that write -------------===//
//
// Functionalisation refuses ops outside of aten that write to their arguments
// (torch 2.13). In its place, an op's own kernel for this device, or for all,
// works on the user's tensors as the user's program does and is traced; one for
// the CPU alone works on copies, which become the new values.
//
// torch.compile asks whether an op has a kernel at Functionalize, and must not
// hear of these, which do nothing for other devices
// (python/torch_ltc/custom_ops.py).
//
//===----------------------------------------------------------------------===//

#include "tracer/custom_ops.h"

#include "events/op_error.h"
#include "executor/live_tensors.h"
#include "fallback/eager_fallback.h"
#include "tracer/trace.h"
#include "tracer/wrapped_value.h"

#include <ATen/FunctionalTensorWrapper.h>
#include <ATen/Functions.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/grad_mode.h>

#include <list>
#include <mutex>
#include <unordered_map>

using namespace torch_ltc;
using at::Tensor;
using c10::DispatchKey;
using c10::IValue;
using c10::OperatorHandle;
using c10::OperatorName;
using torch::jit::Stack;

std::atomic<bool> torch_ltc::hasNewCustomOps = false;

namespace {

/// The same value with each of its tensors exchanged.
template <typename Function>
IValue mapTensors(const IValue &value, Function function) {
  if (value.isTensor())
    return function(value.toTensor());
  if (value.isTensorList()) {
    c10::List<Tensor> list;
    for (const Tensor &tensor : value.toTensorVector())
      list.push_back(function(tensor));
    return list;
  }
  if (value.isOptionalTensorList()) {
    c10::List<std::optional<Tensor>> list;
    for (const std::optional<Tensor> &tensor : value.toOptionalTensorVector())
      list.push_back(tensor ? std::optional(function(*tensor)) : std::nullopt);
    return list;
  }
  return value;
}

template <typename Predicate>
bool anyTensor(c10::ArrayRef<IValue> values, Predicate predicate) {
  bool any = false;
  for (const IValue &value : values)
    mapTensors(value, [&](const Tensor &tensor) {
      any = any || (tensor.defined() && predicate(tensor));
      return tensor;
    });
  return any;
}

namespace functional = at::functionalization::impl;

/// Around a lazy tensor, and not around what torch.compile traces with.
bool isWrapper(const Tensor &tensor) {
  return tensor.defined() && tensor.device().is_lazy() &&
         functional::isFunctionalTensor(tensor) &&
         !functional::from_functional_tensor(tensor).key_set().has(
             DispatchKey::Python);
}

bool isWritten(const c10::Argument &argument) {
  return argument.alias_info() && argument.alias_info()->isWrite();
}

c10::StorageImpl *storageOf(const Tensor &wrapper) {
  return wrapper.unsafeGetTensorImpl()->unsafe_storage().unsafeGetStorageImpl();
}

/// A call on CPU copies. Of a tensor that is written to all the memory is
/// copied, so that arguments share on the CPU what they share here, and have
/// their strides.
class WritingCall {
public:
  WritingCall(const OperatorHandle &op, Stack &stack)
      : op(op), stack(stack),
        begin(stack.size() - op.schema().arguments().size()) {}

  void run() {
    unwrapArguments();
    runFallback(op, stack, "a custom op without a kernel for device 'lazy'",
                [this](const OperatorHandle &, Stack &) { runOnCpu(); });
    for (const Memory &memory : memories)
      setValue(memory.whole, memory.value);
    for (const Place &place : places)
      finish(place);
    wrapResults();
  }

private:
  /// What an argument that is written to and others are parts of.
  struct Memory {
    explicit Memory(const Tensor &wrapper)
        : whole(wholeMemory(wrapper)), storage(storageOf(wrapper)),
          // Another tensor may have the same value inside.
          value(traceOp("aten::clone", {valueOf(whole)})) {}

    Tensor whole;
    c10::StorageImpl *storage;
    Tensor value;
  };

  /// An argument there, the `visit`th tensor in the list of arguments.
  struct Place {
    size_t visit;
    Tensor wrapper;
    const Memory *memory;
    bool isWritten;
    Tensor onCpu;
  };

  const Memory *memoryOf(const Tensor &wrapper) const {
    for (const Memory &memory : memories)
      if (memory.storage == storageOf(wrapper))
        return &memory;
    return nullptr;
  }

  void unwrapArguments() {
    const auto &arguments = op.schema().arguments();
    for (size_t i = 0; i < arguments.size(); ++i)
      if (isWritten(arguments[i]))
        mapTensors(stack[begin + i], [&](const Tensor &tensor) {
          if (isWrapper(tensor) && !memoryOf(tensor))
            memories.emplace_back(tensor);
          return tensor;
        });
    size_t visit = 0;
    for (size_t i = 0; i < arguments.size(); ++i)
      stack[begin + i] =
          mapTensors(stack[begin + i], [&](const Tensor &tensor) {
            size_t here = visit++;
            if (!isWrapper(tensor))
              return tensor;
            const Memory *memory = memoryOf(tensor);
            if (!memory)
              return valueOf(tensor);
            places.push_back(
                {here, tensor, memory, isWritten(arguments[i]), Tensor()});
            return memory->value;
          });
  }

  /// The part of the memory's copy that the argument is.
  Tensor partOf(const Tensor &copy, const Place &place) const {
    const Tensor &whole = place.memory->whole, &wrapper = place.wrapper;
    bool isWhole = wrapper.sizes() == whole.sizes() &&
                   wrapper.strides() == whole.strides();
    if (!whole.is_non_overlapping_and_dense() || !wrapper.has_storage()) {
      TORCH_CHECK(isWhole, op.schema().name(),
                  " would write to a view of a tensor that has gaps between "
                  "its elements: call it on a clone() of the view.",
                  opSuffix(op.schema().name()));
      return copy;
    }
    int64_t offset = wrapper.sym_storage_offset().expect_int() -
                     whole.sym_storage_offset().expect_int();
    return at::empty({0}, copy.options().dtype(wrapper.scalar_type()))
        .set_(copy.storage(), offset, wrapper.sizes(), wrapper.strides());
  }

  void runOnCpu() {
    size_t visit = 0;
    auto place = places.begin();
    for (size_t i = begin; i < stack.size(); ++i)
      stack[i] = mapTensors(stack[i], [&](const Tensor &tensor) {
        if (place == places.end() || place->visit != visit++)
          return tensor;
        place->onCpu = partOf(tensor, *place);
        return (place++)->onCpu;
      });
    op.redispatchBoxed(c10::DispatchKeySet(DispatchKey::CPU), &stack);
    visit = 0;
    for (size_t i = begin; i < stack.size(); ++i)
      stack[i] = mapTensors(stack[i], [&](const Tensor &result) {
        return separate(result, visit++);
      });
  }

  /// An argument that the op returns isn't a new tensor; a view of one is.
  Tensor separate(const Tensor &result, size_t visit) {
    for (const Place &place : places) {
      if (place.onCpu.is_same(result)) {
        returned.emplace_back(visit, place.wrapper);
        return Tensor();
      }
      if (result.defined() && result.has_storage() &&
          result.storage().is_alias_of(place.onCpu.storage()))
        return result.clone();
    }
    return result;
  }

  void finish(const Place &place) const {
    if (!place.isWritten)
      return;
    if (place.onCpu.sizes() != place.wrapper.sizes()) // a resized `out=`
      setValue(place.wrapper, makeTensor(HostData::copyOf(place.onCpu)));
    if (!op.hasKernelForDispatchKey(DispatchKey::ADInplaceOrView) &&
        !place.wrapper.is_inference())
      place.wrapper.unsafeGetTensorImpl()->bump_version();
  }

  void wrapResults() {
    size_t visit = 0;
    auto argument = returned.begin();
    for (size_t i = begin; i < stack.size(); ++i)
      stack[i] = mapTensors(stack[i], [&](const Tensor &result) {
        if (argument != returned.end() && argument->first == visit++)
          return (argument++)->second;
        bool isInside = result.defined() && result.device().is_lazy();
        return isInside ? functional::to_functional_tensor(result) : result;
      });
  }

  const OperatorHandle &op;
  Stack &stack;
  size_t begin;
  std::list<Memory> memories;
  std::list<Place> places;
  std::list<std::pair<size_t, Tensor>> returned; // by the result's visit
};

/// The first of these keys at which the op's author has given a kernel.
std::optional<DispatchKey>
firstKernel(const OperatorHandle &op,
            std::initializer_list<DispatchKey> inOrder) {
  for (DispatchKey key : inOrder)
    if (op.hasKernelForDispatchKey(key))
      return key;
  return std::nullopt;
}

void checkGradients(const OperatorHandle &op, c10::ArrayRef<IValue> arguments) {
  if (!at::GradMode::is_enabled() ||
      op.hasKernelForDispatchKey(DispatchKey::Autograd) ||
      op.hasKernelForDispatchKey(DispatchKey::AutogradLazy))
    return;
  const std::string &name = op.schema().name();
  TORCH_CHECK(
      !anyTensor(arguments, [](const Tensor &t) { return t.requires_grad(); }),
      name,
      " writes to its arguments and runs eagerly for device 'lazy', where no "
      "gradients go through it: call it under torch.no_grad(), or give it a "
      "kernel for all devices (key \"CompositeImplicitAutograd\").",
      opSuffix(name));
}

/// At Functionalize.
class WritingOp final : public c10::OperatorKernel {
public:
  explicit WritingOp(c10::SafeKernelFunction previous)
      : previous(std::move(previous)) {}

  void operator()(const OperatorHandle &op, c10::DispatchKeySet keys,
                  Stack *stack) {
    auto arguments = torch::jit::last(*stack, op.schema().arguments().size());
    if (!anyTensor(arguments, isWrapper))
      return previous.callBoxed(op, keys, stack);
    if (auto key = firstKernel(op, {DispatchKey::Lazy,
                                    DispatchKey::CompositeExplicitAutograd,
                                    DispatchKey::CompositeImplicitAutograd}))
      return op.callBoxedForDispatchKey(*key, *stack);
    const std::string &name = op.schema().name();
    TORCH_CHECK_NOT_IMPLEMENTED(
        op.hasComputedKernelForDispatchKey(DispatchKey::CPU), name,
        " has no kernel for device 'lazy' or 'cpu': give it one with "
        "register_kernel() or torch.library.impl().",
        opSuffix(name));
    checkGradients(op, arguments);
    at::AutoDispatchBelowAutograd noAutograd;
    WritingCall(op, *stack).run();
  }

private:
  c10::SafeKernelFunction previous;
};

/// The ops that have a kernel of ours, and those that aren't looked at yet.
struct CustomOps {
  std::mutex mutex;
  std::list<OperatorName> defined;
  std::unordered_map<OperatorName, c10::RegistrationHandleRAII> kernels;
  /// Kernels of ops that are gone.
  std::list<c10::RegistrationHandleRAII> left;
};

CustomOps &customOps() {
  // Never destroyed: deregistration at exit races with other libraries'.
  static auto *ops = new CustomOps;
  return *ops;
}

/// torch calls it under a lock that registration needs too.
struct Listener final : c10::OpRegistrationListener {
  void onOperatorRegistered(const OperatorHandle &op) override {
    if (op.operator_name().name.starts_with("aten::") ||
        !op.schema().is_mutable())
      return;
    CustomOps &ops = customOps();
    std::scoped_lock lock(ops.mutex);
    ops.defined.push_back(op.operator_name());
    hasNewCustomOps = true;
  }

  void onOperatorDeregistered(const OperatorHandle &op) override {
    CustomOps &ops = customOps();
    std::scoped_lock lock(ops.mutex);
    ops.defined.remove(op.operator_name());
    auto kernel = ops.kernels.find(op.operator_name());
    if (kernel == ops.kernels.end())
      return;
    ops.left.push_back(std::move(kernel->second));
    ops.kernels.erase(kernel);
    hasNewCustomOps = true;
  }
};

void registerKernel(const OperatorName &name) {
  constexpr auto key = DispatchKey::Functionalize;
  auto &dispatcher = c10::Dispatcher::singleton();
  std::optional<OperatorHandle> op = dispatcher.findSchema(name);
  if (!op || op->hasKernelForDispatchKey(key))
    return;
  c10::RegistrationHandleRAII handle = dispatcher.registerImpl(
      name, key,
      c10::KernelFunction::makeFromBoxedFunctor(std::make_unique<WritingOp>(
          op->getComputedKernelForDispatchKey(key))),
      std::nullopt, nullptr, "registered by torch_ltc");
  CustomOps &ops = customOps();
  std::scoped_lock lock(ops.mutex);
  ops.kernels.emplace(name, std::move(handle));
}

} // namespace

void torch_ltc::watchCustomOps() {
  static auto *handle = new c10::RegistrationHandleRAII(
      c10::Dispatcher::singleton().addRegistrationListener(
          std::make_unique<Listener>()));
  static_cast<void>(handle);
  registerNewCustomOps();
}

void torch_ltc::registerNewCustomOps() {
  CustomOps &ops = customOps();
  std::list<OperatorName> names;
  std::list<c10::RegistrationHandleRAII> left;
  {
    std::scoped_lock lock(ops.mutex);
    names.swap(ops.defined);
    left.swap(ops.left);
    hasNewCustomOps = false;
  }
  left.clear(); // before an op of the same name gets its kernel
  for (const OperatorName &name : names)
    registerKernel(name);
}

bool torch_ltc::isOurKernelAtFunctionalize(const OperatorName &name) {
  CustomOps &ops = customOps();
  std::scoped_lock lock(ops.mutex);
  return ops.kernels.contains(name);
}
