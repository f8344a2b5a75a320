//===- registration.cpp - Kernels of the Lazy dispatch keys ---------------===//
//
// What a kernel for an op is, in this order:
//
//   hand-written     copies, factories, lists, reads, random numbers
//   traced           rows of the op table
//   a view           (only reached below functionalisation) traced as its copy
//   composite        ops that torch makes of other functional ops by itself
//   fallback         everything else
//
// torch's CompositeExplicitAutograd kernels win over a backend fallback, and
// many of them write in place, which has no meaning below functionalisation:
// those ops get the fallback by name.
//
//===----------------------------------------------------------------------===//

#include "tracer/registration.h"

#include "executor/live_tensors.h"
#include "fallback/eager_fallback.h"
#include "lowering/external_backend.h"
#include "tracer/boxed_kernels.h"
#include "tracer/trace.h"

#include <unordered_set>

using namespace torch_ltc;
using c10::DispatchKey;
using c10::OperatorHandle;
using torch::jit::Stack;

namespace {

class TraceKernel final : public c10::OperatorKernel {
public:
  explicit TraceKernel(const OpRecord &record) : record(record) {}

  void operator()(const OperatorHandle &op, c10::DispatchKeySet, Stack *stack) {
    if (isFallbackForced(record.name))
      return runFallback(op, *stack, "forced");
    if (isRefusedByBackend(record.emitName))
      return runFallback(op, *stack, "not supported by the selected backend");
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

/// Composite kernels that only call functional ops and views.
bool isTraceableComposite(const std::string &name) {
  static const std::unordered_set<std::string> names = {
      "aten::_foreach_add",
      "aten::_convolution",
      "aten::embedding_backward",
      "aten::isclose",
      "aten::is_pinned",
      "aten::_has_same_storage_numel",
      "aten::is_coalesced",
      "aten::_nested_tensor_from_mask",
      "aten::_unsafe_index.Tensor",
      "aten::unsafe_split.Tensor",
      "aten::detach",
      "aten::_pin_memory",
      "aten::is_set_to",
      "aten::_cummax_helper",
      "aten::sym_size.int",
      "aten::dense_dim",
      "aten::sparse_dim",
      "aten::is_same_size",
      "aten::trace_backward",
      "aten::_neg_view",
      "aten::rand",
      "aten::randn",
      "aten::_version",
      "aten::requires_grad_",
      "aten::zeros",
      "aten::ones",
      "aten::repeat_interleave.self_int",
      "aten::nan_to_num",
      "aten::count_nonzero",
      "aten::linalg_solve",
      "aten::_unsafe_masked_index",
      "aten::_unsafe_masked_index_put_accumulate",
      "aten::hash_tensor",
      "aten::mish_backward",
      "aten::glu_jvp",
      "aten::native_norm",
      "aten::std_mean.correction"};
  return names.count(name) || name.rfind("aten::_foreach_", 0) == 0;
}

bool isMutable(const c10::FunctionSchema &schema) {
  return schema.is_mutable();
}

bool returnsView(const c10::FunctionSchema &schema) {
  for (const c10::Argument &result : schema.returns())
    if (result.alias_info() && !result.alias_info()->isWrite())
      return true;
  return false;
}

/// "aten::select.int" -> the row of "aten::select_copy.int".
const OpRecord *copyRecord(const c10::OperatorName &name) {
  std::string copy = name.name + "_copy";
  if (!name.overload_name.empty())
    copy += "." + name.overload_name;
  return findOpRecord(copy);
}

std::string textOf(const c10::OperatorName &name) {
  return name.overload_name.empty() ? name.name
                                    : name.name + "." + name.overload_name;
}

class Registrar {
public:
  void take(const std::vector<std::string> &names) {
    taken.insert(names.begin(), names.end());
  }

  void registerTraced() {
    for (const OpRecord &record : opRecords()) {
      // A kernel of ours for an op that torch differentiates by decomposing it
      // would hide it from autograd.
      bool skip = record.traceKind != TraceKind::nodeTrace ||
                  record.returnsList || record.handle->schema().is_mutable() ||
                  record.handle->hasKernelForDispatchKey(
                      DispatchKey::CompositeImplicitAutograd);
      if (!skip && taken.insert(record.name).second)
        implement(record.handle->operator_name(), record);
    }
  }

  void registerRest(const AtenOps &ops) {
    for (const OperatorHandle &op : ops)
      if (!taken.count(textOf(op.operator_name())))
        registerOther(op, op.operator_name());
  }

private:
  void registerOther(const OperatorHandle &op, const c10::OperatorName &name) {
    if (op.hasKernelForDispatchKey(DispatchKey::CompositeImplicitAutograd))
      return;
    if (returnsView(op.schema()) && !isMutable(op.schema())) {
      if (const OpRecord *copy = copyRecord(name))
        implement(name, *copy);
      return;
    }
    if (op.hasKernelForDispatchKey(DispatchKey::CompositeExplicitAutograd) &&
        !isTraceableComposite(textOf(name)))
      registerBoxedKernel(
          name, DispatchKey::Lazy,
          c10::KernelFunction::makeFromBoxedFunction<&fallbackKernel>());
  }

  void implement(const c10::OperatorName &name, const OpRecord &record) {
    registerBoxedKernel(name, DispatchKey::Lazy,
                        c10::KernelFunction::makeFromBoxedFunctor(
                            std::make_unique<TraceKernel>(record)));
  }

  std::unordered_set<std::string> taken;
};

} // namespace

void torch_ltc::registerKernels() {
  // Never destroyed: deregistration at exit races with other libraries'.
  auto *kernels = new torch::Library(torch::Library::IMPL, "aten",
                                     DispatchKey::Lazy, __FILE__, __LINE__);
  Registrar registrar;
  registrar.take(registerCopyKernels(*kernels));
  registrar.take(registerFactoryKernels(*kernels));
  registrar.take(registerListKernels(*kernels));
  registrar.take(registerScalarKernels(*kernels));
  registrar.take(registerRandomKernels(*kernels));
  registrar.take(registerIndexingKernels(*kernels));
  registrar.take(registerAsStridedKernels(*kernels));
  registrar.registerTraced();
  const AtenOps ops = atenOps();
  registrar.registerRest(ops);

  auto *autograd =
      new torch::Library(torch::Library::IMPL, "aten",
                         DispatchKey::AutogradLazy, __FILE__, __LINE__);
  registerAutogradKernels(*autograd);
  registerAsStridedAutograd(*autograd);
  registerLstmCell(*autograd);
  registerViewCopies(ops);
  registerOutChecks();
  registerForeachKernels(ops);
  registerAutocastKernels(ops);
  registerSparseLayouts();
  registerRefusedLayouts();

  auto *fallback = new torch::Library(torch::Library::IMPL, "_",
                                      DispatchKey::Lazy, __FILE__, __LINE__);
  fallback->fallback(
      torch::CppFunction::makeFromBoxedFunction<&fallbackKernel>());
}
