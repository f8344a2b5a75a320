//===- attention.cpp - Attention as one op --------------------------------===//
//
// torch computes scaled_dot_product_attention as two products and a softmax,
// whose result autograd saves: it takes memory for each pair of a query and a
// key. If there are many pairs, attention is one op here and its gradient
// another, which recomputes the scores from log_sum. The runtime has commands
// for both.
//
//   scores = (scale * query) @ key.T + mask
//   log_sum = log(sum(exp(scores))),  output = exp(scores - log_sum) @ value
//
// Short attention is one op too, which the compiler decomposes: eager has one
// kernel for it, whereas an interpreted program would run the 27 ops of torch's
// decomposition. Without a gradient it is short_attention, otherwise
// trained_attention and trained_attention_backward. The kernel of the latter
// recomputes the scores, like eager's; a compiled step computes them once.
//
//===----------------------------------------------------------------------===//

#include "compilation/external_backend.h"
#include "fallback/eager_fallback.h"
#include "graph/live_tensors.h"
#include "graph/torch_dispatch.h"
#include "ops/optional_tensor.h"
#include "ops/registration.h"
#include "shape/strides.h"
#include "tracing/boxed_kernels.h"
#include "tracing/trace.h"
#include "tracing/typed_op.h"
#include "tracing/wrapped_value.h"
#include "tracing/writing_call.h"

#include <ATen/Context.h>
#include <ATen/FunctionalTensorWrapper.h>
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/ops/_fused_sdp_choice_ops.h>
#include <ATen/ops/scaled_dot_product_attention_native.h>
#include <c10/core/impl/TorchDispatchModeTLS.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/csrc/autograd/functions/utils.h>
#include <torch/library.h>

#include <cmath>
#include <limits>

using namespace torch_ltc;
using at::Tensor;
using c10::IValue;
using torch::autograd::AutogradContext;
using torch::autograd::Variable;
using torch::autograd::variable_list;

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// Minimum number of query-key pairs of one head for which it is faster not to
/// store the scores if no gradient has to recompute them, or if attention is
/// causal, so that half of them are masked (docs/notes/measurements.md).
constexpr int64_t kMinScores = 128 * 128;
/// Otherwise, the minimum number of pairs in all heads for which saving the
/// memory of the scores (64 MiB for each layer) outweighs the additional matrix
/// product of the gradient.
constexpr int64_t kMinTrainedScores = int64_t(1) << 24;
/// Minimum number of heads in the whole batch, because the gradient's threads
/// work on different heads.
constexpr int64_t kMinHeads = 4;

// Implementations with torch's ops: kernels for eager calls, and functions that
// second-order gradients differentiate.

Tensor scoresOf(const Tensor &query, const Tensor &key,
                const OptionalTensor &mask, bool isCausal) {
  Tensor scores = at::matmul(query, key.transpose(-2, -1));
  if (exists(mask))
    scores = scores + *mask;
  if (!isCausal)
    return scores;
  Tensor later =
      at::ones({query.size(-2), key.size(-2)}, query.options().dtype(at::kBool))
          .triu(1);
  return scores.masked_fill(later, -kInfinity);
}

/// Gradients of query, key and value. `delta` is the sum of `weights *
/// gradWeights` over the keys.
std::tuple<Tensor, Tensor, Tensor>
operandGradients(const Tensor &gradOutput, const Tensor &query,
                 const Tensor &key, const Tensor &weights,
                 const Tensor &gradWeights, const Tensor &delta) {
  Tensor gradScores = weights * (gradWeights - delta);
  return {at::matmul(gradScores, key),
          at::matmul(gradScores.transpose(-2, -1), query),
          at::matmul(weights.transpose(-2, -1), gradOutput)};
}

/// Returns output and log_sum.
std::tuple<Tensor, Tensor> attention(const Tensor &query, const Tensor &key,
                                     const Tensor &value,
                                     const OptionalTensor &mask,
                                     bool isCausal) {
  Tensor scores = scoresOf(query, key, mask, isCausal);
  Tensor logSum = at::logsumexp(scores, {-1});
  Tensor output = at::matmul(at::_safe_softmax(scores, -1), value);
  return {output, logSum.masked_fill(logSum == -kInfinity, kInfinity)};
}

std::tuple<Tensor, Tensor, Tensor>
attentionBackward(const Tensor &gradOutput, const Tensor &query,
                  const Tensor &key, const Tensor &value, const Tensor &output,
                  const Tensor &logSum, const OptionalTensor &mask,
                  bool isCausal) {
  Tensor weights =
      (scoresOf(query, key, mask, isCausal) - logSum.unsqueeze(-1)).exp();
  Tensor gradWeights = at::matmul(gradOutput, value.transpose(-2, -1));
  Tensor delta = (gradOutput * output).sum(-1, /*keepdim=*/true);
  return operandGradients(gradOutput, query, key, weights, gradWeights, delta);
}

/// Returns the gradients as differentiable functions of the operands alone.
std::tuple<Tensor, Tensor, Tensor>
differentiableBackward(const Tensor &gradOutput, const Tensor &query,
                       const Tensor &key, const Tensor &value,
                       const OptionalTensor &mask, bool isCausal) {
  Tensor weights =
      at::_safe_softmax(scoresOf(query, key, mask, isCausal), /*dim=*/-1);
  Tensor gradWeights = at::matmul(gradOutput, value.transpose(-2, -1));
  Tensor delta = (weights * gradWeights).sum(-1, /*keepdim=*/true);
  return operandGradients(gradOutput, query, key, weights, gradWeights, delta);
}

/// The kernel of short_attention, which calls eager's.
Tensor shortAttention(const Tensor &query, const Tensor &key,
                      const Tensor &value, const OptionalTensor &mask,
                      bool isCausal, double scale) {
  return at::scaled_dot_product_attention(query, key, value, mask,
                                          /*dropout_p=*/0, isCausal, scale);
}

/// Returns `tensor` if it is dense with contiguous rows, as eager's kernels
/// require, otherwise a contiguous copy.
Tensor withRows(const Tensor &tensor) {
  return tensor.stride(-1) == 1 && tensor.is_non_overlapping_and_dense()
             ? tensor
             : tensor.contiguous();
}

OptionalTensor addendOf(const OptionalTensor &mask, const Tensor &query) {
  if (!exists(mask) || mask->scalar_type() != at::kBool)
    return mask;
  return at::zeros(mask->sizes(), query.options())
      .masked_fill_(mask->logical_not(), -kInfinity);
}

/// The kernel of trained_attention: calls eager's, which also returns what its
/// gradient reads.
std::tuple<Tensor, Tensor>
trainedAttention(const Tensor &query, const Tensor &key, const Tensor &value,
                 const OptionalTensor &mask, bool isCausal, double scale) {
  return at::_scaled_dot_product_flash_attention_for_cpu(
      withRows(query), withRows(key), withRows(value), /*dropout_p=*/0,
      isCausal, addendOf(mask, query), scale);
}

std::tuple<Tensor, Tensor, Tensor> trainedAttentionBackward(
    const Tensor &gradOutput, const Tensor &query, const Tensor &key,
    const Tensor &value, const Tensor &output, const Tensor &logSum,
    const OptionalTensor &mask, bool isCausal, double scale) {
  return at::_scaled_dot_product_flash_attention_for_cpu_backward(
      withRows(gradOutput), withRows(query), withRows(key), withRows(value),
      withRows(output), logSum, /*dropout_p=*/0, isCausal,
      addendOf(mask, query), scale);
}

TORCH_LIBRARY_FRAGMENT(torch_ltc, library) {
  library.def("attention(Tensor query, Tensor key, Tensor value, Tensor? mask, "
              "bool is_causal) -> (Tensor, Tensor)");
  library.def("attention_backward(Tensor grad_output, Tensor query, Tensor "
              "key, Tensor value, Tensor output, Tensor log_sum, Tensor? mask, "
              "bool is_causal) -> (Tensor, Tensor, Tensor)");
  library.def("short_attention(Tensor query, Tensor key, Tensor value, Tensor? "
              "mask, bool is_causal, float scale) -> Tensor");
  library.def("trained_attention(Tensor query, Tensor key, Tensor value, "
              "Tensor? mask, bool is_causal, float scale) -> (Tensor, Tensor)");
  library.def(
      "trained_attention_backward(Tensor grad_output, Tensor query, "
      "Tensor key, Tensor value, Tensor output, Tensor log_sum, Tensor? "
      "mask, bool is_causal, float scale) -> (Tensor, Tensor, Tensor)");
  auto eager = c10::DispatchKey::CompositeExplicitAutograd;
  library.impl("short_attention",
               torch::dispatch(eager, TORCH_FN(shortAttention)));
  library.impl("trained_attention",
               torch::dispatch(eager, TORCH_FN(trainedAttention)));
  library.impl("trained_attention_backward",
               torch::dispatch(eager, TORCH_FN(trainedAttentionBackward)));
  library.impl("attention", torch::dispatch(eager, TORCH_FN(attention)));
  library.impl("attention_backward",
               torch::dispatch(eager, TORCH_FN(attentionBackward)));
}

/// Returns the mask as a term of rank 4 that is added to the scores.
Tensor asAddend(Tensor mask, at::ScalarType dtype) {
  if (mask.scalar_type() == at::kBool)
    mask = at::zeros(mask.sizes(), mask.options().dtype(dtype))
               .masked_fill(mask.logical_not(), -kInfinity);
  while (mask.dim() < 4)
    mask = mask.unsqueeze(0);
  return mask;
}

void saveAttention(AutogradContext *context, const Variable &query,
                   const Variable &key, const Variable &value,
                   const Tensor &output, const Tensor &logSum,
                   const OptionalTensor &mask, bool isCausal) {
  context->save_for_backward(
      {query, key, value, output, logSum, exists(mask) ? *mask : Variable()});
  context->saved_data["is_causal"] = isCausal;
  context->mark_non_differentiable({logSum});
}

/// The values that `saveAttention` has saved.
struct SavedAttention {
  Variable query, key, value, output, logSum;
  OptionalTensor mask;
  bool isCausal;

  explicit SavedAttention(AutogradContext *context)
      : isCausal(context->saved_data["is_causal"].toBool()) {
    variable_list saved = context->get_saved_variables();
    query = saved[0], key = saved[1], value = saved[2];
    output = saved[3], logSum = saved[4];
    if (saved[5].defined())
      mask = saved[5];
  }
};

class Attention : public torch::autograd::Function<Attention> {
public:
  static variable_list forward(AutogradContext *context, const Variable &query,
                               const Variable &key, const Variable &value,
                               const OptionalTensor &mask, bool isCausal) {
    at::AutoDispatchBelowADInplaceOrView below;
    auto [output, logSum] = typedOp<&attention>("torch_ltc::attention")
                                .call(query, key, value, mask, isCausal);
    saveAttention(context, query, key, value, output, logSum, mask, isCausal);
    return {output, logSum};
  }

  static variable_list backward(AutogradContext *context,
                                variable_list gradients) {
    SavedAttention saved(context);
    auto [gradQuery, gradKey, gradValue] =
        at::GradMode::is_enabled()
            ? differentiableBackward(gradients[0], saved.query, saved.key,
                                     saved.value, saved.mask, saved.isCausal)
            : typedOp<&attentionBackward>("torch_ltc::attention_backward")
                  .call(gradients[0], saved.query, saved.key, saved.value,
                        saved.output, saved.logSum, saved.mask, saved.isCausal);
    return {gradQuery, gradKey, gradValue, Variable(), Variable()};
  }
};

class TrainedAttention : public torch::autograd::Function<TrainedAttention> {
public:
  static variable_list forward(AutogradContext *context, const Variable &query,
                               const Variable &key, const Variable &value,
                               const OptionalTensor &mask, bool isCausal,
                               double scale) {
    at::AutoDispatchBelowADInplaceOrView below;
    auto [output, logSum] =
        typedOp<&trainedAttention>("torch_ltc::trained_attention")
            .call(query, key, value, mask, isCausal, scale);
    saveAttention(context, query, key, value, output, logSum, mask, isCausal);
    context->saved_data["scale"] = scale;
    // Prevents autograd from creating zeros, which nobody reads, as the
    // gradient of log_sum.
    context->set_materialize_grads(false);
    return {output, logSum};
  }

  static variable_list backward(AutogradContext *context,
                                variable_list gradients) {
    if (!gradients[0].defined())
      return variable_list(6);
    SavedAttention saved(context);
    double scale = context->saved_data["scale"].toDouble();
    Tensor gradQuery, gradKey, gradValue;
    if (at::GradMode::is_enabled()) {
      OptionalTensor addend;
      if (saved.mask)
        addend = asAddend(*saved.mask, saved.query.scalar_type());
      std::tie(gradQuery, gradKey, gradValue) =
          differentiableBackward(gradients[0], saved.query * scale, saved.key,
                                 saved.value, addend, saved.isCausal);
      gradQuery = gradQuery * scale;
    } else {
      std::tie(gradQuery, gradKey, gradValue) =
          typedOp<&trainedAttentionBackward>(
              "torch_ltc::trained_attention_backward")
              .call(gradients[0], saved.query, saved.key, saved.value,
                    saved.output, saved.logSum, saved.mask, saved.isCausal,
                    scale);
    }
    return {gradQuery, gradKey, gradValue, Variable(), Variable(), Variable()};
  }
};

/// Whether each size is 1 or equals that of `whole`.
bool broadcastsAtSameRank(at::IntArrayRef sizes, at::IntArrayRef whole) {
  for (size_t i = 0; i < sizes.size(); ++i)
    if (sizes[i] != 1 && sizes[i] != whole[i])
      return false;
  return true;
}

bool isPlainMask(const Tensor &mask, const Tensor &query, const Tensor &key) {
  int64_t sizes[] = {query.size(0), query.size(1), query.size(2), key.size(2)};
  at::ScalarType dtype = mask.scalar_type();
  return (dtype == at::kBool || dtype == at::kFloat) && mask.dim() >= 1 &&
         mask.dim() <= 4 && mask.size(-1) == key.size(2) &&
         !mask.requires_grad() && isPlainOperand(mask, dtype) &&
         broadcastsAtSameRank(mask.sizes(),
                              at::IntArrayRef(sizes).slice(4 - mask.dim()));
}

bool isLong(const Tensor &query, const Tensor &key, const Tensor &value,
            bool isCausal) {
  for (const Tensor &tensor : {query, key, value})
    if (tensor.dim() != 4 || !isPlainOperand(tensor, at::kFloat) ||
        tensor.numel() == 0)
      return false;
  if (key.size(3) != query.size(3) || value.size(2) != key.size(2) ||
      query.sizes().slice(0, 2) != key.sizes().slice(0, 2) ||
      query.sizes().slice(0, 2) != value.sizes().slice(0, 2))
    return false;
  int64_t heads = query.size(0) * query.size(1);
  int64_t scores = query.size(2) * key.size(2);
  bool isTrained = torch::autograd::compute_requires_grad(query, key, value);
  return heads >= kMinHeads && scores >= kMinScores &&
         (!isTrained || isCausal || heads * scores >= kMinTrainedScores);
}

double factorOf(std::optional<double> scale, const Tensor &query) {
  return scale ? *scale : 1 / std::sqrt(double(query.size(3)));
}

/// Whether eager computes the call with one kernel, whose result has the
/// query's strides (torch 2.13). Other calls are decomposed.
bool isShort(const Tensor &query, const Tensor &key, const Tensor &value,
             const OptionalTensor &mask, bool isCausal) {
  at::ScalarType dtype = query.scalar_type();
  if (dtype != at::kFloat && dtype != at::kDouble)
    return false;
  for (const Tensor &tensor : {query, key, value})
    if (!tensor.device().is_lazy() || tensor.dim() != 4 ||
        tensor.scalar_type() != dtype || tensor.numel() == 0 ||
        tensor.stride(3) != 1 || tensor.size(3) != query.size(3) ||
        tensor.sizes().slice(0, 2) != query.sizes().slice(0, 2))
      return false;
  if (key.size(2) != value.size(2) ||
      !at::globalContext().userEnabledFlashSDP())
    return false;
  if (!exists(mask))
    return true;
  int64_t sizes[] = {query.size(0), query.size(1), query.size(2), key.size(2)};
  int64_t rank = mask->dim();
  return !isCausal && mask->device().is_lazy() && (rank == 2 || rank == 4) &&
         (mask->scalar_type() == at::kBool || mask->scalar_type() == dtype) &&
         broadcastsAtSameRank(mask->sizes(),
                              at::IntArrayRef(sizes).slice(4 - rank));
}

/// Traces short attention as one op, given operands without functional
/// wrappers. Returns an undefined tensor if that isn't possible.
Tensor tracedShortAttention(const Tensor &query, const Tensor &key,
                            const Tensor &value, const OptionalTensor &mask,
                            bool isCausal, std::optional<double> scale) {
  static const OpRecord &record = getOpRecord("torch_ltc::short_attention");
  if (!isShort(query, key, value, mask, isCausal) || isAnyFallbackForced() ||
      isUnsupportedByBackend(record.emitName))
    return Tensor();
  return traceOp(record,
                 {query, key, value, exists(mask) ? IValue(*mask) : IValue(),
                  isCausal, factorOf(scale, query)})[0];
}

/// Whether no mode, tensor subclass or forward-mode gradient needs the ops into
/// which torch decomposes the call.
bool isPlain(const Tensor &query, const Tensor &key, const Tensor &value,
             const OptionalTensor &mask) {
  for (const Tensor &tensor : {query, key, value})
    if (!isPlainOperand(tensor, tensor.scalar_type()))
      return false;
  return !exists(mask) || isPlainOperand(*mask, mask->scalar_type());
}

/// Traces short attention as one op, and its gradient as another one. Returns
/// an undefined tensor if that isn't possible.
Tensor shortAttentionWithGradient(const Tensor &query, const Tensor &key,
                                  const Tensor &value,
                                  const OptionalTensor &mask, bool isCausal,
                                  std::optional<double> scale) {
  static const OpRecord &record = getOpRecord("torch_ltc::trained_attention");
  static const OpRecord &backward =
      getOpRecord("torch_ltc::trained_attention_backward");
  if (!isShort(query, key, value, mask, isCausal) ||
      (exists(mask) && mask->requires_grad()) || isAnyFallbackForced() ||
      isUnsupportedByBackend(record.emitName) ||
      isUnsupportedByBackend(backward.emitName))
    return Tensor();
  return TrainedAttention::apply(query, key, value, mask, isCausal,
                                 factorOf(scale, query))[0];
}

/// Traces short attention as one op, with or without a gradient. Returns an
/// undefined tensor if that isn't possible.
Tensor shortAttention(const Tensor &query, const Tensor &key,
                      const Tensor &value, const OptionalTensor &mask,
                      bool isCausal, std::optional<double> scale) {
  auto traced = [&] {
    return tracedShortAttention(valueOf(query), valueOf(key), valueOf(value),
                                exists(mask) ? OptionalTensor(valueOf(*mask))
                                             : OptionalTensor(),
                                isCausal, scale);
  };
  Tensor result;
  if (c10::InferenceMode::is_enabled()) {
    bool plain = !c10::impl::dispatch_mode_enabled() &&
                 (!exists(mask) || isLazyWrapper(*mask));
    for (const Tensor &tensor : {query, key, value})
      plain = plain && isLazyWrapper(tensor) && !hasTorchDispatch(tensor);
    if (!plain)
      return Tensor();
    c10::impl::ExcludeDispatchKeyGuard below(c10::DispatchKey::Functionalize);
    result = traced();
  } else {
    if (!isPlain(query, key, value, mask))
      return Tensor();
    if (torch::autograd::compute_requires_grad(query, key, value, mask))
      return shortAttentionWithGradient(query, key, value, mask, isCausal,
                                        scale);
    BelowFunctionalization below;
    result = traced();
  }
  return result.defined() ? wrapIfOutside(std::move(result)) : result;
}

Tensor attend(const Tensor &query, const Tensor &key, const Tensor &value,
              const OptionalTensor &mask, double dropout, bool isCausal,
              std::optional<double> scale, bool enableGqa) {
  bool plain = dropout == 0 && isLong(query, key, value, isCausal) &&
               (!exists(mask) || (!isCausal && isPlainMask(*mask, query, key)));
  if (!plain) {
    Tensor result;
    if (dropout == 0 && !enableGqa)
      result = shortAttention(query, key, value, mask, isCausal, scale);
    if (result.defined())
      return result;
    return at::native::scaled_dot_product_attention(
        query, key, value, mask, dropout, isCausal, scale, enableGqa);
  }
  double factor = factorOf(scale, query);
  OptionalTensor addend;
  if (exists(mask))
    addend = asAddend(*mask, at::kFloat);
  if (c10::InferenceMode::is_enabled())
    return std::get<0>(typedOp<&attention>("torch_ltc::attention")
                           .call(query * factor, key, value, addend, isCausal));
  return Attention::apply(query * factor, key, value, addend, isCausal)[0];
}

/// Computes attention and returns the result with eager's strides: the result
/// of eager's fused kernel has the query's order of dims; the result of eager's
/// decomposition is row-major.
Tensor scaledDotProductAttention(const Tensor &query, const Tensor &key,
                                 const Tensor &value,
                                 const OptionalTensor &mask, double dropout,
                                 bool isCausal, std::optional<double> scale,
                                 bool enableGqa) {
  Tensor result =
      attend(query, key, value, mask, dropout, isCausal, scale, enableGqa);
  // A tangent must keep the result's strides, and eager's fused kernel has
  // none.
  if (!isLazyWrapper(query) || !isLazyWrapper(result) ||
      result.sizes() != query.sizes() || result._fw_grad(/*level=*/0).defined())
    return result;
  Strides strides = copyStrides(query, at::MemoryFormat::Preserve);
  if (result.strides() == strides)
    return result;
  // Reads the CPU's choice, which only depends on sizes, strides and dtypes.
  constexpr int64_t kFused = 1; // SDPBackend::flash_attention
  if (at::_ops::_fused_sdp_choice::redispatch(
          c10::DispatchKeySet(c10::DispatchKey::CPU), query, key, value, mask,
          dropout, isCausal, scale, enableGqa) != kFused)
    return result;
  result = result.clone(); // may be a view of a product
  setGeometry(at::functionalization::impl::from_functional_tensor(result),
              strides);
  result.unsafeGetTensorImpl()->set_sizes_and_strides(result.sizes(), strides);
  return result;
}

} // namespace

void torch_ltc::registerAttention() {
  registerComposite<scaledDotProductAttention>("scaled_dot_product_attention");
}
