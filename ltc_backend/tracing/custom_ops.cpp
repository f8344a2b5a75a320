//===- custom_ops.cpp - Ops defined outside aten --------------------------===//
//
// Functionalization rejects ops outside aten that write to their arguments or
// return views of them, and runs all others below itself, where writes through
// views have no effect (torch 2.13). This file's kernels change that: an op's
// kernel for device lazy or for all devices runs on the user's tensors and is
// traced, like the user's program; if an op only has a CPU kernel, it runs on
// copies, which become the values of the arguments that the kernel has written,
// whether or not the op's schema declares it.
//
// torch.compile checks whether an op has a kernel at Functionalize, and must
// not see this file's kernels, which do nothing for other devices
// (_torch_patches/custom_ops.py).
//
//===----------------------------------------------------------------------===//

#include "tracing/custom_ops.h"

#include "events/op_error.h"
#include "tracing/boxed_kernels.h"
#include "tracing/subclass_calls.h"
#include "tracing/writing_call.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/grad_mode.h>

#include <list>
#include <mutex>
#include <unordered_map>
#include <unordered_set>

using namespace torch_ltc;
using at::Tensor;
using c10::DispatchKey;
using c10::IValue;
using c10::OperatorHandle;
using c10::OperatorName;
using torch::jit::Stack;

std::atomic<bool> torch_ltc::hasNewCustomOps = false;

namespace {

/// Returns the first key in `inOrder` at which the op has a kernel.
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
      " writes to its arguments and runs eagerly for device 'lazy', where it "
      "has no gradients: call it under torch.no_grad(), or register a kernel "
      "for all devices (key \"CompositeImplicitAutograd\").",
      opSuffix(name));
}

bool hasAliases(const c10::FunctionSchema &schema) {
  for (const c10::Argument &argument : schema.arguments())
    if (argument.alias_info())
      return true;
  return false;
}

/// Whether the op is one of FSDP's. Their kernels compose aten ops and work on
/// any device, but torch (2.13) registers them for its own devices only. Some
/// of the ops write to arguments without declaring it.
bool isComposition(const OperatorHandle &op) {
  return op.schema().name().starts_with("fsdp::") &&
         op.hasKernelForDispatchKey(DispatchKey::CPU);
}

/// The kernel at key Functionalize of an op defined outside aten.
class CustomOp final : public KernelAround {
public:
  using KernelAround::KernelAround;

  void operator()(const OperatorHandle &op, c10::DispatchKeySet keys,
                  Stack *stack) {
    auto arguments = torch::jit::last(*stack, op.schema().arguments().size());
    bool isAliased = hasAliases(op.schema());
    if (!anyTensor(arguments, isLazyWrapper))
      return previous.callBoxed(op, keys, stack);
    if (isBeforePython(keys, arguments))
      return callWithoutFunctionalization(op, keys, stack);
    if (isComposition(op))
      return op.callBoxedForDispatchKey(DispatchKey::CPU, *stack);
    if (auto key = firstKernel(op, {DispatchKey::Lazy,
                                    DispatchKey::CompositeExplicitAutograd,
                                    DispatchKey::CompositeImplicitAutograd}))
      return op.callBoxedForDispatchKey(*key, *stack);
    const std::string &name = op.schema().name();
    TORCH_CHECK_NOT_IMPLEMENTED(
        op.hasComputedKernelForDispatchKey(DispatchKey::CPU), name,
        " has no kernel for device 'lazy' or 'cpu': register one with "
        "register_kernel() or torch.library.impl().",
        opSuffix(name));
    if (isAliased)
      checkGradients(op, arguments);
    at::AutoDispatchBelowAutograd noAutograd;
    runWritingCall(op, *stack,
                   "a custom op without a kernel for device 'lazy'");
  }
};

/// The ops for which this file has registered a kernel, and the new ops
/// (`defined`) for which it may register one.
struct CustomOps {
  std::mutex mutex;
  std::list<OperatorName> defined;
  std::unordered_map<OperatorName, c10::RegistrationHandleRAII> kernels;
  /// Ops of torch without such a kernel, for which another file registers one.
  std::unordered_set<OperatorName> wrapped;
  /// Kernels of ops that no longer exist.
  std::list<c10::RegistrationHandleRAII> left;
};

CustomOps &customOps() {
  // Never destroyed: deregistration at exit would race with that of other
  // libraries.
  static auto *ops = new CustomOps;
  return *ops;
}

/// Whether the op belongs to this library or to PyTorch. There are hundreds of
/// such ops. Those without aliases get no kernel here.
bool isOfTorch(const std::string &name) {
  // Defined in Python, possibly after distributed/registration.cpp has
  // registered its kernels.
  if (name == "_c10d_functional::_wrap_tensor_autograd")
    return false;
  for (const char *space :
       {"torch_ltc::", "quantized::", "_quantized::", "mkldnn::", "onednn::",
        "mkldnn_prepacked::", "sparse::", "xnnpack::", "prepacked::", "c10d::",
        "_c10d_functional::", "symm_mem::", "inductor::", "profiler::"})
    if (name.starts_with(space))
      return true;
  return false;
}

/// Collects new ops. torch calls the listener under a lock that registration
/// also needs, so the ops' kernels are registered later.
struct Listener final : c10::OpRegistrationListener {
  void onOperatorRegistered(const OperatorHandle &op) override {
    const std::string &name = op.operator_name().name;
    if (name.starts_with("aten::") ||
        (!hasAliases(op.schema()) && isOfTorch(name)))
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
      c10::KernelFunction::makeFromBoxedFunctor(
          std::make_unique<CustomOp>(op->getComputedKernelForDispatchKey(key))),
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
  return ops.kernels.contains(name) || ops.wrapped.contains(name);
}

void torch_ltc::noteKernelAtFunctionalize(const OperatorName &name) {
  CustomOps &ops = customOps();
  std::scoped_lock lock(ops.mutex);
  ops.wrapped.insert(name);
}
