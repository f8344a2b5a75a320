//===- registration.cpp - Kernels of the Lazy dispatch keys ---------------===//
//
// Registers the kernel of each op; in order of precedence:
//
//   hand-written     copies, factories, lists, reads, random numbers
//   traced           rows of the op table
//   a formula        registered by Python at `import torch`; if the op also has
//                    a row, the formula is for other compilers
//   a view           (only reached below functionalization) traced as its copy
//   composite        ops that torch itself decomposes into functional ops
//                    (ir/other_ops.cpp)
//   fallback         everything else
//
// torch's CompositeExplicitAutograd kernels take precedence over a backend
// fallback, and many of them write in place, which has no meaning below
// functionalization: for those ops, the fallback is registered by name.
//
// `import torch` only registers the kernels that can create the first lazy
// tensor, about 80. All others are registered when that tensor is created;
// until then, ops that have a device argument but no tensor have a temporary
// kernel.
//
//===----------------------------------------------------------------------===//

#include "device/registration.h"

#include "distributed/registration.h"
#include "eager_semantics/registration.h"
#include "fallback/eager_fallback.h"
#include "fallback/sparse_tensors.h"
#include "graph/first_tensor.h"
#include "graph/live_tensors.h"
#include "graph/torch_dispatch.h"
#include "ir/other_ops.h"
#include "ops/fused_optimizers.h"
#include "ops/registration.h"
#include "tracing/boxed_kernels.h"
#include "tracing/custom_ops.h"
#include "tracing/formula_choice.h"
#include "tracing/remembered_formula.h"
#include "tracing/subclass_calls.h"
#include "tracing/trace.h"

using namespace torch_ltc;
using c10::DispatchKey;
using c10::OperatorHandle;
using torch::jit::Stack;

namespace {

class TraceKernel final : public c10::OperatorKernel {
public:
  explicit TraceKernel(const OpRecord &record) : record(record) {}

  void operator()(const OperatorHandle &op, c10::DispatchKeySet, Stack *stack) {
    if (isInsideTorchDispatch() && callWithFunctionalization(op, stack))
      return;
    if (auto reason = reasonForFallback(record.name, record.emitName))
      return runFallback(op, *stack, reason);
    size_t numArguments = record.arguments.size();
    std::vector<at::Tensor> results =
        traceOp(record, torch::jit::last(*stack, numArguments));
    torch::jit::drop(*stack, numArguments);
    for (at::Tensor &result : results)
      stack->emplace_back(record.hasTensorArgument
                              ? std::move(result)
                              : wrapIfOutside(std::move(result)));
  }

private:
  const OpRecord &record;
};

/// The kernel at key Lazy of an op with both a row in the op table and a
/// formula in Python, which is for other compilers.
class TraceOrFormula final : public c10::OperatorKernel {
public:
  TraceOrFormula(const OpRecord &record, c10::SafeKernelFunction formula)
      : record(record), traced(record), formula(std::move(formula)) {}

  void operator()(const OperatorHandle &op, c10::DispatchKeySet keys,
                  Stack *stack) {
    if (wantsFormula(record, torch::jit::last(*stack, record.arguments.size())))
      formula.callBoxed(op, keys, stack);
    else
      traced(op, keys, stack);
  }

private:
  const OpRecord &record;
  TraceKernel traced;
  c10::SafeKernelFunction formula;
};

/// The kernel of such an op at key AutogradLazy, if its formula also runs above
/// autograd. A call that is traced by the row gets PyTorch's gradient of the
/// op; a call that runs the formula is differentiated by autograd.
class GradientOrFormula final : public c10::OperatorKernel {
public:
  GradientOrFormula(const OpRecord &record, c10::SafeKernelFunction formula)
      : record(record), formula(std::move(formula)) {}

  void operator()(const OperatorHandle &op, c10::DispatchKeySet keys,
                  Stack *stack) {
    if (wantsFormula(record, torch::jit::last(*stack, record.arguments.size())))
      formula.callBoxed(op, keys, stack);
    else
      op.callBoxedForDispatchKey(DispatchKey::Autograd, *stack);
  }

private:
  const OpRecord &record;
  c10::SafeKernelFunction formula;
};

/// The kernel of a view op. If a Meta kernel of torch makes a view of a fake
/// tensor, the view is a Meta tensor with the dispatch keys of the fake
/// tensor's device (torch 2.13). Calls of the op on such a tensor are
/// redispatched to key Meta.
class ViewKernel final : public c10::OperatorKernel {
public:
  explicit ViewKernel(const OpRecord &record) : onDevice(record) {}

  void operator()(const OperatorHandle &op, c10::DispatchKeySet keys,
                  Stack *stack) {
    size_t numArguments = op.schema().arguments().size();
    if (torch::jit::peek(*stack, 0, numArguments).toTensor().is_meta())
      op.redispatchBoxed(c10::DispatchKeySet(DispatchKey::Meta), stack);
    else
      onDevice(op, keys, stack);
  }

private:
  TraceKernel onDevice;
};

bool isMutable(const c10::FunctionSchema &schema) {
  return schema.is_mutable();
}

bool returnsView(const c10::FunctionSchema &schema) {
  for (const c10::Argument &result : schema.returns())
    if (result.alias_info() && !result.alias_info()->isWrite())
      return true;
  return false;
}

/// The kernel of ops without a row in the op table.
void fallbackKernel(const OperatorHandle &op, Stack *stack) {
  if (!isInsideTorchDispatch() || !callWithFunctionalization(op, stack))
    runFallback(op, *stack,
                op.hasTag(at::Tag::dynamic_output_shape)
                    ? "the result's size depends on values"
                    : "not in the op table");
}

/// Registers a kernel at key Lazy, unless the op has one: a hand-written one,
/// or one that Python has registered at `import torch`.
void implement(const OperatorHandle &op, c10::KernelFunction kernel) {
  if (!op.hasKernelForDispatchKey(DispatchKey::Lazy))
    registerBoxedKernel(op.operator_name(), DispatchKey::Lazy,
                        std::move(kernel));
}

/// Whether the op may have a sparse gradient, which is never traced. The
/// formula above autograd then decides by itself.
bool hasSparseGradients(const c10::FunctionSchema &schema) {
  return schema.argumentIndexWithName("sparse").has_value();
}

void trace(const OperatorHandle &op, const OpRecord &record) {
  if (hasFormula(op)) {
    registerAround<TraceOrFormula>(op, DispatchKey::Lazy, record);
    if (op.hasKernelForDispatchKey(DispatchKey::AutogradLazy) &&
        !hasSparseGradients(op.schema()))
      registerAround<GradientOrFormula>(op, DispatchKey::AutogradLazy, record);
    return;
  }
  implement(op, c10::KernelFunction::makeFromBoxedFunctor(
                    std::make_unique<TraceKernel>(record)));
}

/// Whether eager decomposes the op, too. Some ops with a decomposition (for
/// example, `silu_backward`) have a CPU kernel, which rounds once where the
/// decomposition rounds several times.
bool isDecomposed(const OperatorHandle &op) {
  return op.hasKernelForDispatchKey(DispatchKey::CompositeImplicitAutograd) &&
         !op.hasKernelForDispatchKey(DispatchKey::CPU);
}

void registerTraced() {
  for (const OpRecord &record : opRecords()) {
    // Also skips ops that torch differentiates by decomposing them: a kernel of
    // ours would hide the decomposition from autograd.
    bool skip = record.traceKind != TraceKind::nodeTrace ||
                record.returnsList || record.handle->schema().is_mutable() ||
                isDecomposed(*record.handle);
    if (!skip)
      trace(*record.handle, record);
  }
}

void registerOther(const OperatorHandle &op) {
  const c10::OperatorName &name = op.operator_name();
  if (op.hasKernelForDispatchKey(DispatchKey::CompositeImplicitAutograd))
    return;
  if (returnsView(op.schema()) && !isMutable(op.schema())) {
    if (const OpRecord *copy = copyRecord(name))
      implement(op, c10::KernelFunction::makeFromBoxedFunctor(
                        std::make_unique<ViewKernel>(*copy)));
    return;
  }
  if (op.hasKernelForDispatchKey(DispatchKey::CompositeExplicitAutograd) &&
      !holds(OpFact::IsComposed, textOf(name)))
    implement(op,
              c10::KernelFunction::makeFromBoxedFunction<&fallbackKernel>());
}

/// Ops through which a script may use the device without having a tensor on it:
/// those that torch (2.13) dispatches by their options and doesn't decompose
/// (e2e_tests/backend/test_first_tensor.py compares the list with the
/// dispatcher's). `empty` and `_to_copy` are hand-written.
const char *const byDevice[] = {
    "_cudnn_init_dropout_state",
    "_efficientzerotensor",
    "_empty_affine_quantized",
    "_empty_per_channel_affine_quantized",
    "_make_dep_token",
    "_sparse_compressed_tensor_with_dims",
    "_sparse_coo_tensor_with_dims",
    "_sparse_coo_tensor_with_dims_and_tensors",
    "arange",
    "arange.start",
    "arange.start_step",
    "bartlett_window",
    "bartlett_window.periodic",
    "blackman_window",
    "blackman_window.periodic",
    "empty_permuted",
    "empty_quantized",
    "eye",
    "eye.m",
    "fft_fftfreq",
    "fft_rfftfreq",
    "from_file",
    "full",
    "hamming_window",
    "hamming_window.periodic",
    "hamming_window.periodic_alpha",
    "hamming_window.periodic_alpha_beta",
    "hann_window",
    "hann_window.periodic",
    "kaiser_window",
    "kaiser_window.beta",
    "kaiser_window.periodic",
    "linspace",
    "linspace.Scalar_Tensor",
    "linspace.Tensor_Scalar",
    "linspace.Tensor_Tensor",
    "logspace",
    "logspace.Scalar_Tensor",
    "logspace.Tensor_Scalar",
    "logspace.Tensor_Tensor",
    "normal.float_float",
    "ones",
    "rand",
    "rand.generator",
    "randint",
    "randint.generator",
    "randint.low",
    "randint.low_generator",
    "randn",
    "randn.generator",
    "randperm",
    "randperm.generator",
    "range",
    "range.step",
    "scalar_tensor",
    "sparse_compressed_tensor.comp_plain_value",
    "sparse_compressed_tensor.comp_plain_value_size",
    "sparse_coo_tensor.size",
    "tril_indices",
    "triu_indices",
    "zeros",
};

/// The temporary kernels of the ops in `byDevice`; removing a handle removes
/// its kernel.
std::vector<c10::RegistrationHandleRAII> &standIns() {
  // Never destroyed: deregistration at exit races with that of other libraries.
  static auto *handles = new std::vector<c10::RegistrationHandleRAII>;
  return *handles;
}

void standInKernel(const OperatorHandle &op, c10::DispatchKeySet keys,
                   Stack *stack) {
  prepareFirstTensor();
  op.redispatchBoxed(keys, stack);
}

/// Registers kernels at key Lazy. Hand-written ones come first:
/// `registerTraced` and `registerOther` skip ops that have a kernel.
void registerKernels(const AtenOps &ops) {
  auto *kernels = new torch::Library(torch::Library::IMPL, "aten",
                                     DispatchKey::Lazy, __FILE__, __LINE__);
  registerListKernels(*kernels);
  registerScalarKernels(*kernels);
  registerRandomKernels(*kernels);
  registerIndexingKernels(*kernels);
  registerPoolingBackward(*kernels);
  registerConvolutionKernels(*kernels);
  registerHistogramKernels(*kernels);
  registerGroupedProducts(*kernels);
  registerAsStridedKernels(*kernels);
  registerCtcLoss(*kernels);
  registerReinterpretingViews();
  // Only wraps the kernels registered so far; the later ones check for
  // subclasses themselves.
  registerSubclassCalls(ops);
  registerTraced();
  registerNearestScales();
  for (const OperatorHandle &op : ops)
    registerOther(op);
}

/// Registers kernels at the keys above Lazy. Most of them wrap the existing
/// kernel at their key (`registerAround`), so the kernel that is registered
/// last gets the call first.
void registerPrecedingKernels(const AtenOps &ops) {
  auto *autograd =
      new torch::Library(torch::Library::IMPL, "aten",
                         DispatchKey::AutogradLazy, __FILE__, __LINE__);
  registerAutogradKernels(*autograd);
  registerAsStridedAutograd(*autograd);
  registerAttention();
  registerOneHot();
  registerMaskedWrites();
  registerQuantiles();
  registerLinear(*autograd);
  registerLstmCell(*autograd);
  registerRecurrence(*autograd);
  registerCtcLossAutograd(*autograd);
  registerValueDependentGradients();
  registerViewCopies(ops);
  registerSplits();
  registerInferenceComposites(ops);
  registerForeachKernels(ops);
  registerFusedOptimizers();
  registerSparseResults();
  registerOutKernels(ops);
  registerOtherDevices(ops);
  registerOperandLayouts();
  registerInPlaceKernels(ops);
  registerMixedWrites();
  registerOverlapChecks();
  registerFillsOfCpuTensors();
  registerInPlaceViewChecks();
  registerMetaShortcuts();
  registerViewErrors();
  registerAsStridedOnStorage();
  registerViewInverses();
  registerMathBits();
  registerResizeInMemory();
  registerNewEmptyStrided();
  registerStorageChanges();
  registerOwnSizes(ops);
  registerTracedViews();
  registerCollectives();
}

void registerRemaining() {
  registerLockKey();
  // Other threads may be dispatching ops, so each op must have a kernel at any
  // moment, possibly the fallback. Code that creates a tensor waits for this
  // registration.
  auto *fallback = new torch::Library(torch::Library::IMPL, "_",
                                      DispatchKey::Lazy, __FILE__, __LINE__);
  fallback->fallback(
      torch::CppFunction::makeFromBoxedFunction<&fallbackKernel>());
  standIns().clear();
  const AtenOps ops = atenOps();
  registerKernels(ops);
  registerPrecedingKernels(ops);
  watchCustomOps();
}

} // namespace

void torch_ltc::registerFirstKernels() {
  auto *kernels = new torch::Library(torch::Library::IMPL, "aten",
                                     DispatchKey::Lazy, __FILE__, __LINE__);
  registerCopyKernels(*kernels);
  registerFactoryKernels(*kernels);
  registerSparseLayouts();
  onFirstSparse([] {
    registerTracedSparseOps();
    registerSparseFallbacks();
  });
  registerSharedFactories();
  for (const char *name : byDevice) {
    auto op = torch::jit::parseName("aten::" + std::string(name));
    standIns().push_back(c10::Dispatcher::singleton().registerImpl(
        std::move(op), DispatchKey::Lazy,
        c10::KernelFunction::makeFromBoxedFunction<&standInKernel>(),
        std::nullopt, nullptr, "registered by torch_ltc"));
  }
  onFirstTensor(registerRemaining);
}
