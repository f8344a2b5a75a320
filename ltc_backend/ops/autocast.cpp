//===- autocast.cpp - Mixed precision: torch.autocast("lazy") -------------===//
//
// torch 2.13 has no autocast key for lazy tensors, so they use the key of a
// device for which torch has no kernels (`autocastKey`). Kernels are registered
// at this key for the ops that have an autocast kernel on the CPU, as the
// dispatcher reports them, so that a model gets the same dtypes as in eager.
//
//===----------------------------------------------------------------------===//

#include "ops/autocast.h"

#include "memory/lazy_device.h"
#include "tracing/boxed_kernels.h"

#include <ATen/autocast_mode.h>
#include <ATen/core/grad_mode.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/library.h>

#include <mutex>
#include <unordered_map>
#include <unordered_set>

using namespace torch_ltc;
using c10::DispatchKey;
using c10::IValue;
using c10::OperatorHandle;
using torch::jit::Stack;

namespace {

enum class CastPolicy {
  Lower,   // every operand to the autocast dtype
  Float,   // every operand to float32
  Promote, // every operand to float32 if one is float32, otherwise as `Lower`
};

/// Returns the policy of the CPU's autocast for an op with an autocast kernel.
/// Ops that aren't listed run in float32.
CastPolicy policyOf(const std::string &name) {
  static const std::unordered_set<std::string> lower = {
      "_addmm_activation",
      "_convolution",
      "_native_multi_head_attention",
      "addbmm",
      "addmm",
      "baddbmm",
      "bmm",
      "conv1d",
      "conv2d",
      "conv3d",
      "conv_tbc",
      "conv_transpose1d",
      "conv_transpose2d",
      "conv_transpose3d",
      "linalg_vecdot",
      "linear",
      "lstm",
      "matmul",
      "mkldnn_rnn_layer",
      "mm",
      "prelu",
      "scaled_dot_product_attention"};
  static const std::unordered_set<std::string> promote = {"cat", "index_copy",
                                                          "stack"};
  return lower.count(name)     ? CastPolicy::Lower
         : promote.count(name) ? CastPolicy::Promote
                               : CastPolicy::Float;
}

bool isEligible(const at::Tensor &tensor) {
  return tensor.defined() && tensor.device().is_lazy() &&
         tensor.is_floating_point() && tensor.scalar_type() != at::kDouble;
}

/// Cache of parameter casts: a parameter that is used twice is cast once and
/// gets one gradient, as in eager. An entry holds its source, whose address is
/// the key.
class CastCache {
public:
  static CastCache &get() {
    static auto *cache = new CastCache;
    return *cache;
  }

  at::Tensor cast(const at::Tensor &tensor, at::ScalarType type) {
    if (!at::autocast::is_autocast_cache_enabled() ||
        type != at::autocast::get_autocast_dtype(autocastDevice) ||
        tensor.scalar_type() != at::kFloat || !tensor.requires_grad() ||
        !tensor.is_leaf() || tensor.is_view())
      return tensor.to(type);
    std::lock_guard<std::mutex> lock(mutex);
    auto found = casts.find(tensor.unsafeGetTensorImpl());
    if (found != casts.end())
      return found->second.second;
    at::Tensor result = tensor.to(type);
    casts.emplace(tensor.unsafeGetTensorImpl(), std::pair(tensor, result));
    return result;
  }

  void clear() {
    std::unordered_map<c10::TensorImpl *, std::pair<at::Tensor, at::Tensor>>
        old; // destroyed outside the lock
    std::lock_guard<std::mutex> lock(mutex);
    old.swap(casts);
  }

private:
  std::mutex mutex;
  std::unordered_map<c10::TensorImpl *, std::pair<at::Tensor, at::Tensor>>
      casts;
};

at::Tensor castTensor(const at::Tensor &tensor, at::ScalarType type) {
  if (!isEligible(tensor) || tensor.scalar_type() == type)
    return tensor;
  return CastCache::get().cast(tensor, type);
}

IValue castValue(const IValue &value, at::ScalarType type) {
  if (value.isTensor())
    return castTensor(value.toTensor(), type);
  if (!value.isTensorList())
    return value;
  c10::List<at::Tensor> list;
  for (const at::Tensor &tensor : value.toTensorVector())
    list.push_back(castTensor(tensor, type));
  return list;
}

/// Returns float32 if an operand is float32, otherwise `type`. Raises eager's
/// error for an operand of another 16-bit dtype before the first of float32.
at::ScalarType widest(c10::ArrayRef<IValue> values, at::ScalarType type) {
  auto visit = [&](const at::Tensor &tensor) {
    if (!isEligible(tensor) || type == at::kFloat)
      return;
    TORCH_CHECK(tensor.scalar_type() == at::kFloat ||
                    tensor.scalar_type() == type,
                "Unexpected floating ScalarType in at::autocast::prioritize");
    type = tensor.scalar_type();
  };
  for (const IValue &value : values)
    if (value.isTensor())
      visit(value.toTensor());
    else if (value.isTensorList())
      for (const at::Tensor &tensor : value.toTensorVector())
        visit(tensor);
  return type;
}

class AutocastKernel final : public c10::OperatorKernel {
public:
  explicit AutocastKernel(CastPolicy policy) : policy(policy) {}

  void operator()(const OperatorHandle &op, c10::DispatchKeySet, Stack *stack) {
    c10::impl::ExcludeDispatchKeyGuard noAutocast(autocastKey);
    size_t numArguments = op.schema().arguments().size();
    size_t begin = stack->size() - numArguments;
    at::ScalarType type = at::kFloat;
    if (policy != CastPolicy::Float)
      type = at::autocast::get_autocast_dtype(autocastDevice);
    if (policy == CastPolicy::Promote)
      type = widest(torch::jit::last(*stack, numArguments), type);
    for (size_t i = begin; i < stack->size(); ++i)
      (*stack)[i] = castValue((*stack)[i], type);
    op.callBoxed(stack);
  }

private:
  CastPolicy policy;
};

} // namespace

void torch_ltc::clearAutocastCache() { CastCache::get().clear(); }

static void registerAutocastKernel(const c10::OperatorName &name) {
  CastPolicy policy = policyOf(name.name.substr(std::strlen("aten::")));
  registerBoxedKernel(name, autocastKey,
                      c10::KernelFunction::makeFromBoxedFunctor(
                          std::make_unique<AutocastKernel>(policy)));
}

void torch_ltc::prepareAutocast() {
  [[maybe_unused]] static const bool isFirst = [] {
    auto *fallthrough = new torch::Library(torch::Library::IMPL, "_",
                                           autocastKey, __FILE__, __LINE__);
    fallthrough->fallback(torch::CppFunction::makeFallthrough());
    for (const c10::OperatorHandle &op : atenOps())
      if (op.hasKernelForDispatchKey(DispatchKey::AutocastCPU))
        registerAutocastKernel(op.operator_name());
    // Casts lstm's operands, too: on the CPU, lstm becomes mkldnn_rnn_layer,
    // which has an autocast kernel; here, it becomes matrix products and gates.
    registerAutocastKernel({"aten::lstm", "input"});
    return true;
  }();
}
