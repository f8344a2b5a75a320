//===- linear.cpp - A linear layer as one op ------------------------------===//
//
// torch computes a linear layer by a transposition and a product, and its
// gradient by four transpositions and two products, with views around them for
// inputs that aren't matrices. In small models, these ops are a fifth of the
// cost of tracing. Here the layer is one op and its gradient another. The
// compiler decomposes both:
//
//   result = input @ weight.T + bias
//   gradients: grad @ weight, grad.T @ input, grad summed over the rows
//
//===----------------------------------------------------------------------===//

#include "compilation/external_backend.h"
#include "eager_semantics/in_place.h"
#include "fallback/eager_fallback.h"
#include "graph/inference_tensors.h"
#include "graph/live_tensors.h"
#include "ops/optional_tensor.h"
#include "ops/registration.h"
#include "shape/strides.h"
#include "tracing/trace.h"
#include "tracing/wrapped_value.h"

#include <ATen/Functions.h>
#include <ATen/SavedTensorHooks.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/ops/linear_native.h>
#include <torch/csrc/autograd/functions/utils.h>
#include <torch/csrc/autograd/saved_variable.h>
#include <torch/library.h>

using namespace torch_ltc;
using at::Tensor;
using c10::IValue;
using torch::autograd::SavedVariable;
using torch::autograd::variable_list;

namespace {

/// Computes the gradients of input, weight and bias with torch's ops, so that
/// they can be differentiated.
variable_list gradients(const Tensor &grad, const OptionalTensor &input,
                        const OptionalTensor &weight, bool bias) {
  variable_list results(3);
  Tensor rows = grad.reshape({-1, grad.size(-1)});
  if (exists(weight))
    results[0] = at::matmul(grad, *weight);
  if (exists(input))
    results[1] = at::mm(rows.t(), input->reshape({-1, input->size(-1)}));
  if (bias)
    results[2] = rows.sum(0);
  return results;
}

/// The kernel of linear_backward for eager calls.
std::tuple<Tensor, Tensor, Tensor> linearBackward(const Tensor &grad,
                                                  const OptionalTensor &input,
                                                  const OptionalTensor &weight,
                                                  bool bias) {
  variable_list results = gradients(grad, input, weight, bias);
  return {results[0], results[1], results[2]};
}

TORCH_LIBRARY_FRAGMENT(torch_ltc, library) {
  library.def("linear_backward(Tensor grad_output, Tensor? input, Tensor? "
              "weight, bool bias) -> (Tensor, Tensor, Tensor)");
  library.impl("linear_backward",
               torch::dispatch(c10::DispatchKey::CompositeExplicitAutograd,
                               TORCH_FN(linearBackward)));
}

/// Traces an op below functionalization, and wraps its results.
std::vector<Tensor> traceWrapped(const OpRecord &record,
                                 std::initializer_list<OptionalTensor> operands,
                                 std::optional<bool> flag) {
  std::vector<Tensor> results;
  {
    BelowFunctionalization below;
    NewMemory memory; // inference tensors in inference_mode
    c10::SmallVector<IValue, 4> arguments;
    for (const OptionalTensor &operand : operands)
      arguments.push_back(exists(operand) ? IValue(valueOf(*operand))
                                          : IValue());
    if (flag)
      arguments.push_back(*flag);
    results = traceOp(record, arguments);
  }
  for (Tensor &result : results)
    if (result.defined())
      result = wrapIfOutside(std::move(result));
  return results;
}

/// Whether a layer is traced as one op. It is traced as torch's own ops if the
/// user has forced a fallback for some op, or if the external backend declared
/// the layer unsupported.
bool isOneOp() {
  return !isAnyFallbackForced() && !isUnsupportedByBackend("aten.linear");
}

bool isPlain(const Tensor &tensor, at::ScalarType dtype) {
  return isPlainOperand(tensor, dtype) && hasPackedStrides(tensor) &&
         tensor.numel() != 0;
}

bool isPlainLayer(const Tensor &input, const Tensor &weight,
                  const OptionalTensor &bias) {
  at::ScalarType dtype = input.scalar_type();
  return at::isFloatingType(dtype) && input.dim() >= 1 && weight.dim() == 2 &&
         isPlain(input, dtype) && isPlain(weight, dtype) &&
         input.size(-1) == weight.size(1) &&
         (!exists(bias) || (isPlain(*bias, dtype) && bias->dim() == 1 &&
                            bias->size(0) == weight.size(0))) &&
         isOneOp();
}

/// A saved weight. `unpack` returns it with the memory that it had when it was
/// saved, even if another tensor has been assigned to `weight.data` since, as
/// in torch, which saves the weight's transpose, a view of that memory. If the
/// user's hooks pack saved tensors, returns what they unpack.
class SavedWeight {
public:
  void save(const Tensor &weight) {
    saved = SavedVariable(weight, /*is_output=*/false);
    if (at::SavedTensorDefaultHooks::get_hooks())
      return;
    memory = weight.storage();
    rows = weight.size(0);
    columns = weight.size(1);
    offset = weight.sym_storage_offset().expect_int();
  }

  void reset() {
    saved.reset_data();
    memory = c10::Storage();
  }

  Tensor unpack() {
    Tensor weight = saved.unpack();
    if (!memory || !weight.defined() || !weight.has_storage() ||
        weight.storage().is_alias_of(memory))
      return weight;
    Tensor before = at::empty({0}, weight.options());
    {
      at::NoGradGuard quiet;
      before.set_(memory, offset, {rows, columns}, {columns, 1});
    }
    using namespace torch::autograd::impl;
    if (weight.requires_grad())
      set_gradient_edge(before, gradient_edge(weight));
    return before;
  }

private:
  SavedVariable saved;
  c10::Storage memory; // null: packed by hooks
  int64_t rows = 0, columns = 0, offset = 0;
};

/// The autograd node of a linear layer. Its gradients are in the order of
/// addmm's, because the order in which parameters get their gradients is
/// visible: hooks run and DDP fills its buckets in this order.
class LinearBackward final : public torch::autograd::Node {
public:
  enum Gradient : size_t { ofBias, ofInput, ofWeight, count };

  std::string name() const override { return "LinearBackward0"; }

  /// Saves what each gradient needs, as torch does, so that autograd detects
  /// later writes.
  void save(const Tensor &input, const Tensor &weight) {
    if (should_compute_output(ofInput))
      this->weight.save(weight);
    if (should_compute_output(ofWeight))
      this->input = SavedVariable(input, /*is_output=*/false);
  }

  void release_variables() override {
    std::lock_guard<std::mutex> lock(mutex_);
    input.reset_data();
    weight.reset();
  }

  variable_list apply(variable_list &&grads) override {
    std::lock_guard<std::mutex> lock(mutex_);
    const Tensor &grad = grads[0];
    if (!grad.defined())
      return variable_list(Gradient::count);
    OptionalTensor savedInput, savedWeight;
    if (task_should_compute_output(ofInput))
      savedWeight = weight.unpack();
    if (task_should_compute_output(ofWeight))
      savedInput = input.unpack();
    bool bias = task_should_compute_output(ofBias);
    bool plain = !at::GradMode::is_enabled() &&
                 isPlain(grad, grad.scalar_type()) && isOneOp();
    for (const OptionalTensor &tensor : {savedInput, savedWeight})
      plain = plain && (!tensor || isPlain(*tensor, grad.scalar_type()));
    static const OpRecord &record = getOpRecord("torch_ltc::linear_backward");
    variable_list results =
        plain ? traceWrapped(record, {grad, savedInput, savedWeight}, bias)
              : gradients(grad, savedInput, savedWeight, bias);
    std::rotate(results.begin(), results.begin() + 2, results.end());
    return results;
  }

private:
  SavedVariable input;
  SavedWeight weight;
};

Tensor linear(const Tensor &input, const Tensor &weight,
              const OptionalTensor &bias) {
  if (!isPlainLayer(input, weight, bias)) {
    Tensor result = at::native::linear(input, weight, bias);
    // Eager adds the bias in place, so the result has the input's dtype.
    at::ScalarType dtype = input.scalar_type(), from = result.scalar_type();
    if (from == dtype || weight.scalar_type() != dtype)
      return result;
    checkCast(from, dtype);
    return result.to(dtype);
  }
  c10::intrusive_ptr<LinearBackward> node;
  if (torch::autograd::compute_requires_grad(input, weight, bias)) {
    node = c10::make_intrusive<LinearBackward>();
    node->set_next_edges(
        torch::autograd::collect_next_edges(bias, input, weight));
    node->save(input, weight);
  }
  static const OpRecord &record = getOpRecord("aten::linear");
  Tensor result =
      std::move(traceWrapped(record, {input, weight, bias}, std::nullopt)[0]);
  if (node)
    torch::autograd::set_history(result, node);
  return result;
}

} // namespace

void torch_ltc::registerLinear(torch::Library &library) {
  library.impl("linear", TORCH_FN(linear));
}
