//===- sparse_layouts.cpp - Kernels of sparse tensors ---------------------===//
//
// An op on a sparse tensor runs on the CPU (fallback/sparse_tensors.h), unless
// it can be traced (ops/sparse.cpp), or only inspects the tensor, takes it
// apart or assembles it.
//
//===----------------------------------------------------------------------===//

#include "eager_semantics/registration.h"
#include "execution/step_executor.h"
#include "fallback/eager_fallback.h"
#include "fallback/shared_layouts.h"
#include "fallback/sparse_tensors.h"
#include "tracing/boxed_kernels.h"
#include "tracing/subclass_calls.h"
#include "tracing/wrapped_value.h"

#include <ATen/FunctionalTensorWrapper.h>
#include <ATen/Functions.h>

#include <algorithm>
#include <memory>

using namespace torch_ltc;
using at::Tensor;
using c10::DispatchKey;
using c10::IValue;
using c10::OperatorHandle;
using torch::jit::Stack;

namespace {

namespace functional = at::functionalization::impl;

void sparseFallbackKernel(const OperatorHandle &op, Stack *stack) {
  runSparseFallback(op, *stack);
}

/// Calls torch's CPU kernel of an op that doesn't read elements. Because the op
/// may create the first sparse tensor, first registers the kernels for sparse
/// tensors.
struct AsOnCpu final : KernelAround {
  using KernelAround::KernelAround;

  void operator()(const OperatorHandle &op, c10::DispatchKeySet keys,
                  Stack *stack) {
    prepareFirstSparse();
    previous.callBoxed(op, keys, stack);
  }
};

bool isLazy(const IValue &value) {
  return value.isTensor() && value.toTensor().defined() &&
         value.toTensor().device().is_lazy();
}

void unwrap(IValue &value) {
  if (!isLazy(value) || !functional::isFunctionalTensor(value.toTensor()))
    return;
  value = valueOf(value.toTensor());
}

/// Wraps `_to_copy`, so that a move of a sparse tensor to or from this device
/// doesn't run as a fallback.
class ToCopy final : public KernelAround {
public:
  using KernelAround::KernelAround;

  void operator()(const OperatorHandle &op, c10::DispatchKeySet keys,
                  Stack *stack) {
    constexpr size_t kNumArguments = 7, kDevice = 3;
    IValue &self = torch::jit::peek(*stack, 0, kNumArguments);
    IValue &device = torch::jit::peek(*stack, kDevice, kNumArguments);
    bool toLazy = device.isNone() ? isLazy(self) : device.toDevice().is_lazy();
    if (isLazy(self) && toLazy)
      return runSparseFallback(op, *stack);
    if (!isLazy(self) && !toLazy)
      return previous.callBoxed(op, keys, stack);
    if (isLazy(self))
      self = read(self.toTensor());
    else
      device = c10::Device(c10::kCPU);
    op.callBoxed(stack);
    if (toLazy)
      stack->back() = lazySparse(stack->back().toTensor());
  }

private:
  static Tensor read(const Tensor &sparse) {
    std::vector<Tensor> parts = sparseParts(sparse);
    StepExecutor::get().materialize(parts, "aten::_to_copy");
    for (Tensor &part : parts)
      part = part.cpu();
    return cpuSparse(sparse, std::move(parts));
  }
};

/// The kernel of `_sparse_csr_tensor_unsafe` and similar ops. torch's composite
/// supports a fixed list of devices without `lazy` (2.13).
class MakeCompressed final : public KernelAround {
public:
  MakeCompressed(at::Layout layout, c10::SafeKernelFunction previous)
      : KernelAround(std::move(previous)), layout(layout) {}

  void operator()(const OperatorHandle &op, c10::DispatchKeySet keys,
                  Stack *stack) {
    constexpr size_t kNumArguments = 8;
    auto arguments = torch::jit::last(*stack, kNumArguments);
    std::vector<Tensor> parts;
    for (size_t i = 0; i < 3; ++i)
      parts.push_back(arguments[i].toTensor());
    if (!std::all_of(parts.begin(), parts.end(),
                     [](const Tensor &t) { return t.device().is_lazy(); }))
      return previous.callBoxed(op, keys, stack);
    at::ScalarType dtype = arguments[4].isNone() ? parts[2].scalar_type()
                                                 : arguments[4].toScalarType();
    at::Layout wanted =
        arguments[5].isNone() ? layout : arguments[5].toLayout();
    std::vector<int64_t> size = arguments[3].toIntVector();
    if (at::globalContext().checkSparseTensorInvariants())
      at::_validate_sparse_compressed_tensor_args(parts[0], parts[1], parts[2],
                                                  size, wanted);
    Tensor result = lazyCompressed(wanted, dtype, size, parts);
    torch::jit::drop(*stack, kNumArguments);
    stack->emplace_back(std::move(result));
  }

private:
  at::Layout layout;
};

/// Wraps an op that assembles a sparse tensor, at key Functionalize. Skips
/// functionalization, so that indices and values keep their functional wrappers
/// in the sparse tensor.
struct KeepWrapped final : KernelAround {
  using KernelAround::KernelAround;

  void operator()(const OperatorHandle &op, c10::DispatchKeySet keys,
                  Stack *stack) {
    auto arguments = torch::jit::last(*stack, op.schema().arguments().size());
    if (std::none_of(arguments.begin(), arguments.end(), isLazy))
      return previous.callBoxed(op, keys, stack);
    callWithoutFunctionalization(op, keys, stack);
  }
};

/// Wraps ops that may return a sparse or quantized tensor for dense operands,
/// at key Functionalize. Removes functionalization's wrapper from such a
/// result: with the wrapper, it would be read-only.
struct UnwrapSparse final : KernelAround {
  using KernelAround::KernelAround;

  void operator()(const OperatorHandle &op, c10::DispatchKeySet keys,
                  Stack *stack) {
    previous.callBoxed(op, keys, stack);
    for (size_t i = stack->size() - op.schema().returns().size();
         i < stack->size(); ++i) {
      IValue &result = (*stack)[i];
      if (isLazy(result) && (result.toTensor().layout() != c10::kStrided ||
                             result.toTensor().is_quantized()))
        unwrap(result);
    }
  }
};

/// Wraps in-place and `out=` ops at key Functionalize. Calls that write to a
/// sparse, quantized or nested tensor bypass functionalization, which rejects
/// them if another operand is dense.
struct WriteSparse final : KernelAround {
  using KernelAround::KernelAround;

  void operator()(const OperatorHandle &op, c10::DispatchKeySet keys,
                  Stack *stack) {
    size_t begin = stack->size() - op.schema().arguments().size();
    const IValue &written = op.schema().arguments().back().is_out()
                                ? stack->back()
                                : (*stack)[begin];
    if (!isLazy(written) ||
        !(isSparse(written.toTensor()) || hasSharedLayout(written.toTensor())))
      return previous.callBoxed(op, keys, stack);
    for (size_t i = begin; i < stack->size(); ++i)
      unwrap((*stack)[i]);
    c10::impl::ExcludeDispatchKeyGuard guard(DispatchKey::Functionalize);
    op.callBoxed(stack);
  }
};

/// Registers the fallback by name for ops with a kernel for sparse CPU tensors
/// and a composite kernel, which would take precedence over the fallback.
void registerOverComposites(const AtenOps &ops, DispatchKey cpuKey,
                            DispatchKey key) {
  for (const OperatorHandle &op : ops)
    if (op.hasKernelForDispatchKey(cpuKey) &&
        !op.hasKernelForDispatchKey(key) &&
        (op.hasKernelForDispatchKey(DispatchKey::CompositeExplicitAutograd) ||
         op.hasKernelForDispatchKey(
             DispatchKey::CompositeExplicitAutogradNonFunctional)))
      registerBoxedKernel(
          op.operator_name(), key,
          c10::KernelFunction::makeFromBoxedFunction<&sparseFallbackKernel>());
}

void registerAsOnCpu(DispatchKey cpuKey, DispatchKey key,
                     std::initializer_list<const char *> names) {
  for (const char *text : names) {
    c10::OperatorName name = torch::jit::parseName(text);
    registerBoxedKernel(
        name, key,
        c10::KernelFunction::makeFromBoxedFunctor(std::make_unique<AsOnCpu>(
            findOp(name).getComputedKernelForDispatchKey(cpuKey))));
  }
}

void registerResults() {
  SilentRegistration silence;
  constexpr auto key = DispatchKey::Functionalize;
  for (const char *name :
       {"aten::_sparse_coo_tensor_with_dims_and_tensors",
        "aten::sparse_compressed_tensor.comp_plain_value",
        "aten::sparse_compressed_tensor.comp_plain_value_size"})
    registerAround<KeepWrapped>(findOp(torch::jit::parseName(name)), key);
  for (const char *name : {"aten::_to_sparse",
                           "aten::_to_sparse.sparse_dim",
                           "aten::_to_sparse_csr",
                           "aten::_to_sparse_csc",
                           "aten::_to_sparse_bsr",
                           "aten::_to_sparse_bsc",
                           "aten::sparse_mask",
                           "aten::_sparse_mask_projection",
                           "aten::sparse_sampled_addmm",

                           "aten::_sparse_sum_backward",
                           "aten::_sparse_mm_reduce_impl_backward",
                           "aten::_sparse_log_softmax_backward_data",
                           "aten::_sparse_softmax_backward_data",
                           "aten::_spdiags",
                           "aten::quantize_per_tensor",
                           "aten::quantize_per_tensor.tensor_qparams",
                           "aten::quantize_per_tensor.tensors",
                           "aten::quantize_per_channel",
                           "aten::quantize_per_tensor_dynamic",
                           "aten::_make_per_tensor_quantized_tensor",
                           "aten::_make_per_channel_quantized_tensor",
                           "aten::index_select",
                           "aten::mul.Tensor",
                           "aten::div.Tensor",
                           "aten::div.Tensor_mode"})
    registerAround<UnwrapSparse>(findOp(torch::jit::parseName(name)), key);
  for (const char *name :
       {"aten::copy_", "aten::mul_.Tensor", "aten::div_.Tensor",
        "aten::div_.Tensor_mode", "aten::mul.out", "aten::div.out",
        "aten::sspaddmm.out", "aten::hspmm.out",
        "aten::sparse_sampled_addmm.out"})
    registerAround<WriteSparse>(findOp(torch::jit::parseName(name)), key);
}

} // namespace

void torch_ltc::registerSparseFallbacks() {
  const AtenOps ops = atenOps();
  registerOverComposites(ops, DispatchKey::SparseCPU, DispatchKey::SparseLazy);
  registerOverComposites(ops, DispatchKey::SparseCsrCPU,
                         DispatchKey::SparseCsrLazy);
  for (DispatchKey key :
       {DispatchKey::SparseLazy, DispatchKey::SparseCsrLazy}) {
    auto *library =
        new torch::Library(torch::Library::IMPL, "_", key, __FILE__, __LINE__);
    library->fallback(
        torch::CppFunction::makeFromBoxedFunction<&sparseFallbackKernel>());
  }
}

void torch_ltc::registerSparseLayouts() {
  registerAsOnCpu(
      DispatchKey::SparseCPU, DispatchKey::SparseLazy,
      {"aten::_indices", "aten::_values", "aten::indices", "aten::values",
       "aten::_nnz", "aten::sparse_dim", "aten::dense_dim", "aten::_dimI",
       "aten::_dimV", "aten::is_coalesced", "aten::_coalesced_",
       "aten::empty.memory_format", "aten::_sparse_coo_tensor_with_dims",
       "aten::_sparse_coo_tensor_with_dims_and_tensors"});
  registerAsOnCpu(DispatchKey::SparseCsrCPU, DispatchKey::SparseCsrLazy,
                  {"aten::crow_indices", "aten::col_indices",
                   "aten::ccol_indices", "aten::row_indices", "aten::values",
                   "aten::_nnz", "aten::sparse_dim", "aten::dense_dim"});
  for (DispatchKey key : {DispatchKey::SparseLazy, DispatchKey::SparseCsrLazy,
                          DispatchKey::SparseCPU, DispatchKey::SparseCsrCPU})
    registerAround<ToCopy>(findOp({"aten::_to_copy", ""}), key);
  for (const c10::OperatorName &name :
       {c10::OperatorName("aten::empty", "memory_format"),
        c10::OperatorName("aten::zeros_like", "")})
    registerBoxedKernel(
        name, DispatchKey::SparseCsrLazy,
        c10::KernelFunction::makeFromBoxedFunction<&sparseFallbackKernel>());
}

void torch_ltc::registerSparseResults() {
  registerResults();
  for (auto [name, layout] :
       {std::pair("aten::_sparse_compressed_tensor_unsafe", c10::kSparseCsr),
        std::pair("aten::_sparse_csr_tensor_unsafe", c10::kSparseCsr),
        std::pair("aten::_sparse_csc_tensor_unsafe", c10::kSparseCsc),
        std::pair("aten::_sparse_bsr_tensor_unsafe", c10::kSparseBsr),
        std::pair("aten::_sparse_bsc_tensor_unsafe", c10::kSparseBsc)})
    for (DispatchKey key :
         {DispatchKey::AutogradLazy, DispatchKey::Functionalize,
          DispatchKey::SparseCsrLazy, DispatchKey::Lazy})
      registerAround<MakeCompressed>(findOp({name, ""}), key, layout);
}
