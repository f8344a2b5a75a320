//===- eager_fallback.cpp - Ops that run eagerly on the CPU ---------------===//

#include "fallback/eager_fallback.h"

#include "compilation/external_backend.h"
#include "config/config.h"
#include "events/call_log.h"
#include "events/explanations.h"
#include "events/guards.h"
#include "events/metrics.h"
#include "events/op_error.h"
#include "events/portable_trace.h"
#include "execution/assumed_truths.h"
#include "execution/step_executor.h"
#include "fallback/cpu_autocast.h"
#include "fallback/shared_layouts.h"
#include "fallback/sparse_tensors.h"
#include "fallback/unchecked_operands.h"
#include "graph/inference_tensors.h"
#include "graph/live_tensors.h"
#include "ir/op_counters.h"
#include "ir/op_record.h"
#include "ir/tensor_arguments.h"
#include "memory/blocking.h"
#include "memory/lazy_device.h"
#include "shape/strides.h"
#include "source/source_location.h"

#include <ATen/FunctionalTensorWrapper.h>

#include <algorithm>
#include <cstring>

using namespace torch_ltc;
using c10::IValue;

namespace {

std::string nameOf(const c10::OperatorHandle &op) {
  const c10::OperatorName &name = op.operator_name();
  return name.overload_name.empty() ? name.name
                                    : name.name + "." + name.overload_name;
}

void collectLazy(const IValue &value, std::vector<at::Tensor> &tensors) {
  auto add = [&](const at::Tensor &tensor) {
    if (!tensor.defined() || !tensor.device().is_lazy())
      return;
    if (hasSharedLayout(tensor)) // its value is never pending
      return;
    if (!isSparse(tensor))
      return tensors.push_back(tensor);
    for (at::Tensor &part : sparseParts(tensor))
      tensors.push_back(std::move(part));
  };
  if (value.isTensor())
    add(value.toTensor());
  else if (value.isTensorList())
    for (const at::Tensor &tensor : value.toTensorVector())
      add(tensor);
  else if (isOptionalTensorList(value))
    for (const std::optional<at::Tensor> &tensor : toOptionalTensors(value))
      if (tensor)
        add(*tensor);
}

/// CPU versions of the lazy arguments of one call.
class CpuArguments {
public:
  int64_t bytes = 0;

  IValue convert(const IValue &value, bool written) {
    if (value.isDevice() && value.toDevice().is_lazy()) {
      checkLazyDevice(value.toDevice());
      return c10::Device(c10::kCPU);
    }
    return mapTensors(value, [&](const at::Tensor &tensor) {
      return toCpu(tensor, written);
    });
  }

  /// The lazy argument whose CPU version is `result`, or an undefined tensor.
  /// Ops return written arguments; some return sparse arguments unchanged.
  at::Tensor originalOf(const at::Tensor &result) const {
    for (const auto &[original, copy] : writtenTensors)
      if (copy.is_same(result))
        return original;
    for (const SparseArgument &argument : sparse)
      if (argument.copy.is_same(result))
        return argument.original;
    for (const auto &[original, alias] : sharing)
      if (alias.is_same(result))
        return original;
    return at::Tensor();
  }

  bool sharesMemory(const at::Tensor &result) const {
    if (!result.defined() || !result.has_storage())
      return true;
    return std::any_of(shared.begin(), shared.end(), [&](const at::Tensor &t) {
      return t.storage().data() == result.storage().data();
    });
  }

  /// Copies the new values of written arguments to their lazy tensors.
  void storeWritten() {
    for (auto &[original, copy] : writtenTensors) {
      bytes += int64_t(copy.nbytes());
      tensorDataOf(original)->setData(HostData::copyOf(copy));
      if (original.sizes() != copy.sizes()) // an `out=` that was resized
        resetSizes(original, copy.sizes());
    }
    for (const SparseArgument &argument : sparse)
      if (argument.written)
        storeSparse(argument.original, argument.copy, argument.parts);
    for (const auto &[original, alias] : sharing)
      storeShared(original, alias);
  }

  /// Whether there are sparse, quantized or nested arguments. Calls with such
  /// arguments, which have no functional wrappers, arrive here without
  /// functionalization.
  bool hasOtherLayouts() const { return !sparse.empty() || !sharing.empty(); }

private:
  struct SparseArgument {
    at::Tensor original, copy;
    std::vector<at::Tensor> parts;
    bool written;
  };

  at::Tensor sparseToCpu(const at::Tensor &tensor, bool written) {
    if (!tensor.device().is_lazy())
      return tensor;
    // Some kernels accept any compressed layout only if both operands are the
    // same tensor.
    for (const SparseArgument &argument : sparse)
      if (argument.original.is_same(tensor) && (argument.written || !written))
        return argument.copy;
    std::vector<at::Tensor> parts;
    for (const at::Tensor &part : sparseParts(tensor)) {
      HostDataPtr host = tensorDataOf(part)->data();
      bytes += int64_t(byteSize(host->shape()));
      at::Tensor copy = host->copyToTensor();
      if (!hasPackedStrides(part))
        copy = host->copyToTensor(part.strides());
      parts.push_back(std::move(copy));
    }
    at::Tensor copy = cpuSparse(tensor, parts);
    // If an argument requires a gradient, `_sparse_mm_reduce_impl` also stores
    // the position of each maximum for its backward (torch 2.13). An argument
    // that functionalization has unwrapped has lost the flag `requires_grad`,
    // so the copy gets it.
    if (!written && c10::GradMode::is_enabled() &&
        at::isFloatingType(copy.scalar_type()))
      copy.set_requires_grad(true);
    sparse.push_back({tensor, std::move(copy), std::move(parts), written});
    return sparse.back().copy;
  }

  at::Tensor sharedToCpu(const at::Tensor &tensor) {
    if (!tensor.device().is_lazy())
      return tensor;
    for (const auto &[original, alias] : sharing)
      if (original.is_same(tensor))
        return alias;
    return sharing.emplace_back(tensor, sharedOnCpu(tensor)).second;
  }

  at::Tensor toCpu(const at::Tensor &tensor, bool written) {
    if (isSparse(tensor))
      return sparseToCpu(tensor, written);
    if (hasSharedLayout(tensor))
      return sharedToCpu(tensor);
    TensorDataPtr data = tensorDataOf(tensor);
    if (!data)
      return tensor;
    for (const auto &[original, copy] : writtenTensors)
      if (original.is_same(tensor))
        return copy;
    HostDataPtr host = data->data();
    bytes += int64_t(byteSize(host->shape()));
    // The copy keeps the argument's strides, on which the result's may depend.
    bool isStrided = !hasPackedStrides(tensor);
    if (written) {
      writtenTensors.emplace_back(
          tensor, isStrided ? host->copyToTensor(tensor.strides())
                            : host->copyToTensor());
      return writtenTensors.back().second;
    }
    if (isStrided)
      return host->copyToTensor(tensor.strides());
    shared.push_back(host->sharedTensor());
    return shared.back();
  }

  std::vector<std::pair<at::Tensor, at::Tensor>> writtenTensors;
  std::vector<at::Tensor> shared;
  std::vector<SparseArgument> sparse;
  std::vector<std::pair<at::Tensor, at::Tensor>> sharing;
};

at::Tensor tensorToLazy(at::Tensor result, const CpuArguments &arguments,
                        bool outside) {
  if (!result.defined())
    return result;
  at::Tensor original = arguments.originalOf(result);
  if (original.defined())
    return original;
  if (!result.device().is_cpu())
    return result;
  if (isSparse(result))
    return lazySparse(result);
  if (hasSharedLayout(result))
    return sharedOnLazy(result);
  if (result._is_zerotensor()) // has no memory
    result = at::zeros(result.sizes(), result.options());
  bool shares = arguments.sharesMemory(result);
  std::optional<Strides> strides;
  if (!hasPackedStrides(result))
    strides = Strides(result.strides());
  HostDataPtr data =
      shares ? HostData::copyOf(result) : HostData::takeOver(std::move(result));
  at::Tensor lazy = makeTensor(std::move(data));
  if (strides)
    setGeometry(lazy, *strides);
  return outside ? wrapIfOutside(lazy) : lazy;
}

IValue valueToLazy(IValue result, CpuArguments &arguments, bool outside) {
  if (result.isTensor()) {
    at::Tensor tensor = std::move(result).toTensor();
    result = IValue();
    if (tensor.defined() && !isSparse(tensor))
      arguments.bytes += int64_t(tensor.nbytes());
    return tensorToLazy(std::move(tensor), arguments, outside);
  }
  if (result.isTensorList()) {
    std::vector<at::Tensor> tensors = result.toTensorVector();
    result = IValue();
    c10::List<at::Tensor> list;
    for (at::Tensor &tensor : tensors)
      list.push_back(tensorToLazy(std::move(tensor), arguments, outside));
    return list;
  }
  return result;
}

/// Throws if the device doesn't support a result's layout. Called before the
/// new values of written arguments are stored, so that these arguments keep
/// their old values if it throws.
void checkLayout(const IValue &result, const std::string &opName) {
  if (result.isTensorList()) {
    for (const at::Tensor &tensor : result.toTensorVector())
      checkLayout(tensor, opName);
    return;
  }
  if (!result.isTensor() || !result.toTensor().defined())
    return;
  const at::Tensor &tensor = result.toTensor();
  TORCH_CHECK_NOT_IMPLEMENTED(tensor.layout() != c10::kMkldnn, opName,
                              " gives a tensor of oneDNN layout, which device "
                              "'lazy' doesn't support: call "
                              "it on the CPU (x.cpu()).",
                              opSuffix(opName));
}

bool isOfOtherLayout(const IValue &value) {
  return value.isTensor() &&
         (isSparse(value.toTensor()) || hasSharedLayout(value.toTensor()));
}

/// Throws if lazy tensors and tensors of other devices are mixed. Tensors of
/// rank 0 may be on any device, because they are used like numbers.
void checkSameDevice(const c10::OperatorHandle &op,
                     const torch::jit::Stack &stack) {
  size_t count = op.schema().arguments().size();
  if (op.operator_name().name == "aten::copy_")
    return;
  bool lazy = false, other = false;
  for (const IValue &value : torch::jit::last(stack, count)) {
    if (!value.isTensor() || !value.toTensor().defined())
      continue;
    const at::Tensor &tensor = value.toTensor();
    lazy |= tensor.device().is_lazy();
    other |= !tensor.device().is_lazy() && tensor.dim() > 0;
  }
  TORCH_CHECK(!lazy || !other,
              "Expected all tensors to be on the same device, but found at "
              "least two devices, lazy:0 and cpu! Move the arguments of ",
              nameOf(op), " with .to('lazy').", opSuffix(nameOf(op)));
}

void checkHasCpuKernel(const c10::OperatorHandle &op) {
  TORCH_CHECK(op.hasComputedKernelForDispatchKey(c10::DispatchKey::CPU),
              nameOf(op),
              " can't run on device 'lazy': it isn't in the op "
              "table and has no CPU kernel to fall back to; move its arguments "
              "to another device first.",
              opSuffix(nameOf(op)));
}

void runDense(const c10::OperatorHandle &op, torch::jit::Stack &stack) {
  CpuAutocast autocast;
  op.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::CPU), &stack);
}

/// Calls the kernel that the arguments' layouts determine.
void runByLayout(const c10::OperatorHandle &op, torch::jit::Stack &stack) {
  c10::impl::ExcludeDispatchKeyGuard guard(
      c10::autograd_dispatch_keyset_with_ADInplaceOrView |
      c10::DispatchKeySet(c10::DispatchKey::Functionalize));
  op.callBoxed(&stack);
}

/// Whether the op always returns the same tensors, such as `hann_window`. An
/// exported program contains these as constants.
bool makesConstant(const c10::OperatorHandle &op,
                   const torch::jit::Stack &stack) {
  return !op.schema().is_mutable() &&
         !op.hasTag(at::Tag::nondeterministic_seeded) &&
         std::ranges::none_of(
             torch::jit::last(stack, op.schema().arguments().size()),
             [](const c10::IValue &value) {
               return value.isTensor() || value.isList();
             });
}

void run(const c10::OperatorHandle &op, torch::jit::Stack &stack,
         const std::string &reason, const RunOnCpu &runOnCpu) {
  if (isForbidden(Forbidden::fallback) &&
      !(isPortableTrace() && makesConstant(op, stack)))
    checkAllowed(Forbidden::fallback,
                 nameOf(op) + " would run eagerly on the CPU: " + reason);
  Stopwatch stopwatch;
  CallLogRow row;
  row.op = nameOf(op);
  row.reason = reason;
  row.calls = 1;
  row.location = shortText(captureLocation());

  const c10::FunctionSchema &schema = op.schema();
  size_t numArguments = schema.arguments().size();
  size_t begin = stack.size() - numArguments;
  bool ofOperand = isViewOrInverse(op, findOpRecord(row.op));
  ModeOfResults mode(ofOperand, torch::jit::last(stack, numArguments));
  std::optional<NewMemory> newMemory;
  if (!ofOperand)
    newMemory.emplace();
  std::vector<at::Tensor> lazyTensors;
  for (size_t i = 0; i < numArguments; ++i)
    collectLazy(stack[begin + i], lazyTensors);
  try {
    row.syncs = StepExecutor::get().materialize(lazyTensors, row.op);
  } catch (const std::exception &) {
    raiseFailedCheck();
    throw;
  }

  CpuArguments arguments;
  // Written arguments are converted first: one may also be passed as an
  // argument that is only read.
  for (bool pass : {true, false})
    for (size_t i = 0; i < numArguments; ++i)
      if (isWrittenArgument(schema.arguments()[i]) == pass)
        stack[begin + i] = arguments.convert(stack[begin + i], pass);
  try {
    BlockingScope unlocked; // other threads trace meanwhile
    runOnCpu(op, stack);
  } catch (const c10::Error &error) {
    raiseFailedCheck();
    rethrowWithOp(error, row.op);
  }

  for (size_t i = begin; i < stack.size(); ++i)
    checkLayout(stack[i], row.op);
  arguments.storeWritten();
  bool outside = lazyTensors.empty() || arguments.hasOtherLayouts();
  for (size_t i = begin; i < stack.size(); ++i)
    stack[i] = valueToLazy(std::move(stack[i]), arguments, outside);

  row.bytes = arguments.bytes;
  row.seconds = stopwatch.seconds();
  explainFallback(row, fallbackLog().add(row));
  count(Counter::fallback_calls);
  countEagerOp(row.op);
  recordTime(Timer::fallback, row.seconds);
}

/// The value of option force_fallback, cached until an option changes.
const std::string &forcedFallbacks() {
  thread_local uint64_t version = ~0ull;
  thread_local std::string forced;
  if (version != configVersion()) {
    version = configVersion();
    forced = config().force_fallback.get();
  }
  return forced;
}

} // namespace

bool torch_ltc::isFallbackForced(const std::string &opName) {
  return isOpListed(forcedFallbacks(), opName);
}

const char *torch_ltc::reasonForFallback(const std::string &opName,
                                         const char *emitName) {
  if (isFallbackForced(opName))
    return "forced";
  return isUnsupportedByBackend(emitName)
             ? "not supported by the selected backend"
             : nullptr;
}

bool torch_ltc::isAnyFallbackForced() { return !forcedFallbacks().empty(); }

void torch_ltc::runFallback(const c10::OperatorHandle &op,
                            torch::jit::Stack &stack,
                            const std::string &reason) {
  runFallback(op, stack, reason, &runDense);
}

void torch_ltc::runFallback(const c10::OperatorHandle &op,
                            torch::jit::Stack &stack, const std::string &reason,
                            const RunOnCpu &runOnCpu) {
  size_t begin = stack.size() - op.schema().arguments().size();
  if (std::any_of(stack.begin() + begin, stack.end(), isOfOtherLayout))
    return run(op, stack, reason, &runByLayout);
  // Custom ops may mix lazy and CPU tensors.
  if (op.operator_name().name.starts_with("aten::"))
    checkSameDevice(op, stack);
  checkHasCpuKernel(op);
  checkUncheckedOperands(op, stack);
  run(op, stack, reason, runOnCpu);
}

void torch_ltc::runSparseFallback(const c10::OperatorHandle &op,
                                  torch::jit::Stack &stack) {
  checkSameDevice(op, stack);
  run(op, stack, "sparse tensors", &runByLayout);
}

void torch_ltc::runSharedFallback(const c10::OperatorHandle &op,
                                  torch::jit::Stack &stack) {
  size_t begin = stack.size() - op.schema().arguments().size();
  bool isNested = std::any_of(
      stack.begin() + ptrdiff_t(begin), stack.end(), [](const IValue &value) {
        return value.isTensor() && value.toTensor().defined() &&
               value.toTensor().is_nested();
      });
  run(op, stack, isNested ? "nested tensors" : "quantized tensors",
      &runByLayout);
}
