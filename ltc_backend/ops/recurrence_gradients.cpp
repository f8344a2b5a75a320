//===- recurrence_gradients.cpp - Gradients of recurrent layers -----------===//

#include "ops/recurrence_gradients.h"

#include "ops/recurrence.h"
#include "tracing/typed_op.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <torch/csrc/autograd/FunctionsManual.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>

using namespace torch_ltc;
using at::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;
using torch::autograd::generated::details::any_variable_defined;

namespace {

/// Returns the gradients of `operands`, given those of `results`, which are
/// functions of `operands`. The gradients can be differentiated.
variable_list differentiate(variable_list results, variable_list gradients,
                            const variable_list &operands) {
  variable_list outputs, upstream, inputs;
  for (size_t i = 0; i < gradients.size(); ++i)
    if (gradients[i].defined() && results[i].requires_grad()) {
      outputs.push_back(results[i]);
      upstream.push_back(gradients[i]);
    }
  for (const Tensor &operand : operands)
    if (operand.defined() && operand.requires_grad())
      inputs.push_back(operand);
  variable_list found = torch::autograd::grad(
      outputs, inputs, upstream, /*retain_graph=*/true, /*create_graph=*/true,
      /*allow_unused=*/true);
  variable_list all;
  size_t next = 0;
  for (const Tensor &operand : operands)
    all.push_back(operand.defined() && operand.requires_grad() ? found[next++]
                                                               : Tensor());
  return all;
}

/// Computes output, hy and cy with ops that torch differentiates twice.
variable_list lstmBySteps(const Tensor &projections, Tensor h, Tensor c,
                          const Tensor &weight, bool reverse) {
  std::vector<Tensor> steps = projections.unbind(), output(steps.size());
  for (size_t i = 0; i < steps.size(); ++i) {
    size_t t = reverse ? steps.size() - 1 - i : i;
    std::vector<Tensor> gates =
        (steps[t] + at::matmul(h, weight.t())).chunk(4, 1);
    c = gates[1].sigmoid() * c + gates[0].sigmoid() * gates[2].tanh();
    h = gates[3].sigmoid() * c.tanh();
    output[t] = h;
  }
  return {at::stack(output), h, c};
}

variable_list gruBySteps(const Tensor &projections, Tensor h,
                         const Tensor &weight, const Tensor &bias,
                         bool reverse) {
  std::vector<Tensor> steps = projections.unbind(), output(steps.size());
  for (size_t i = 0; i < steps.size(); ++i) {
    size_t t = reverse ? steps.size() - 1 - i : i;
    std::vector<Tensor> input = steps[t].chunk(3, 1);
    std::vector<Tensor> hidden = at::linear(h, weight, bias).chunk(3, 1);
    Tensor r = (input[0] + hidden[0]).sigmoid();
    Tensor z = (input[1] + hidden[1]).sigmoid();
    Tensor n = (input[2] + r * hidden[2]).tanh();
    h = n + z * (h - n);
    output[t] = h;
  }
  return {at::stack(output), h};
}

variable_list rnnBySteps(const Tensor &projections, Tensor h,
                         const Tensor &weight, bool relu, bool reverse) {
  std::vector<Tensor> steps = projections.unbind(), output(steps.size());
  for (size_t i = 0; i < steps.size(); ++i) {
    size_t t = reverse ? steps.size() - 1 - i : i;
    Tensor sum = steps[t] + at::matmul(h, weight.t());
    h = relu ? sum.relu() : sum.tanh();
    output[t] = h;
  }
  return {at::stack(output), h};
}

class Lstm : public torch::autograd::Function<Lstm> {
public:
  static variable_list forward(AutogradContext *context,
                               const Tensor &projections, const Tensor &hx,
                               const Tensor &cx, const Tensor &weight,
                               bool reverse) {
    at::AutoDispatchBelowADInplaceOrView below;
    auto [output, hy, cy, gates, cells] =
        typedOp<&lstm>("torch_ltc::lstm")
            .call(projections, hx, cx, weight, reverse);
    context->save_for_backward(
        {projections, hx, cx, weight, output, gates, cells});
    context->saved_data["reverse"] = reverse;
    context->mark_non_differentiable({gates, cells});
    context->set_materialize_grads(false);
    return {output, hy, cy, gates, cells};
  }

  static variable_list backward(AutogradContext *context, variable_list grads) {
    grads.resize(3);
    if (!any_variable_defined(grads))
      return variable_list(5);
    variable_list saved = context->get_saved_variables();
    const Tensor &hx = saved[1], &cx = saved[2], &weight = saved[3];
    bool reverse = context->saved_data["reverse"].toBool();
    if (at::GradMode::is_enabled()) {
      variable_list results =
          differentiate(lstmBySteps(saved[0], hx, cx, weight, reverse),
                        std::move(grads), {saved[0], hx, cx, weight});
      results.emplace_back();
      return results;
    }
    auto [gradProjections, gradHx, gradCx, gradWeight] =
        typedOp<&lstmBackward>("torch_ltc::lstm_backward")
            .call(optional(grads[0]), optional(grads[1]), optional(grads[2]),
                  hx, cx, weight, saved[4], saved[5], saved[6], reverse);
    return {gradProjections, gradHx, gradCx, gradWeight, Tensor()};
  }
};

class Gru : public torch::autograd::Function<Gru> {
public:
  static variable_list forward(AutogradContext *context,
                               const Tensor &projections, const Tensor &hx,
                               const Tensor &weight, const OptionalTensor &bias,
                               bool reverse) {
    at::AutoDispatchBelowADInplaceOrView below;
    auto [output, hy, gates] =
        typedOp<&gru>("torch_ltc::gru")
            .call(projections, hx, weight, bias, reverse);
    context->save_for_backward(
        {projections, hx, weight, bias.value_or(Tensor()), output, gates});
    context->saved_data["reverse"] = reverse;
    context->mark_non_differentiable({gates});
    context->set_materialize_grads(false);
    return {output, hy, gates};
  }

  static variable_list backward(AutogradContext *context, variable_list grads) {
    grads.resize(2);
    if (!any_variable_defined(grads))
      return variable_list(5);
    variable_list saved = context->get_saved_variables();
    const Tensor &hx = saved[1], &weight = saved[2], &bias = saved[3];
    bool reverse = context->saved_data["reverse"].toBool();
    if (at::GradMode::is_enabled()) {
      variable_list results =
          differentiate(gruBySteps(saved[0], hx, weight, bias, reverse),
                        std::move(grads), {saved[0], hx, weight, bias});
      results.emplace_back();
      return results;
    }
    auto [gradProjections, gradHx, gradWeight, gradBias] =
        typedOp<&gruBackward>("torch_ltc::gru_backward")
            .call(optional(grads[0]), optional(grads[1]), hx, weight, saved[4],
                  saved[5], reverse);
    return {gradProjections, gradHx, gradWeight,
            bias.defined() ? gradBias : Tensor(), Tensor()};
  }
};

class Rnn : public torch::autograd::Function<Rnn> {
public:
  static variable_list forward(AutogradContext *context,
                               const Tensor &projections, const Tensor &hx,
                               const Tensor &weight, bool relu, bool reverse) {
    at::AutoDispatchBelowADInplaceOrView below;
    auto [output, hy] = typedOp<&rnn>("torch_ltc::rnn")
                            .call(projections, hx, weight, relu, reverse);
    context->save_for_backward({projections, hx, weight, output});
    context->saved_data["relu"] = relu;
    context->saved_data["reverse"] = reverse;
    context->set_materialize_grads(false);
    return {output, hy};
  }

  static variable_list backward(AutogradContext *context, variable_list grads) {
    if (!any_variable_defined(grads))
      return variable_list(5);
    variable_list saved = context->get_saved_variables();
    const Tensor &hx = saved[1], &weight = saved[2];
    bool relu = context->saved_data["relu"].toBool();
    bool reverse = context->saved_data["reverse"].toBool();
    if (at::GradMode::is_enabled()) {
      variable_list results =
          differentiate(rnnBySteps(saved[0], hx, weight, relu, reverse),
                        std::move(grads), {saved[0], hx, weight});
      results.resize(5);
      return results;
    }
    auto [gradProjections, gradHx, gradWeight] =
        typedOp<&rnnBackward>("torch_ltc::rnn_backward")
            .call(optional(grads[0]), optional(grads[1]), hx, weight, saved[3],
                  relu, reverse);
    return {gradProjections, gradHx, gradWeight, Tensor(), Tensor()};
  }
};

} // namespace

variable_list torch_ltc::lstmWithGradient(const Tensor &projections,
                                          const Tensor &hx, const Tensor &cx,
                                          const Tensor &weight, bool reverse) {
  return Lstm::apply(projections, hx, cx, weight, reverse);
}

variable_list torch_ltc::gruWithGradient(const Tensor &projections,
                                         const Tensor &hx, const Tensor &weight,
                                         const OptionalTensor &bias,
                                         bool reverse) {
  return Gru::apply(projections, hx, weight, bias, reverse);
}

variable_list torch_ltc::rnnWithGradient(const Tensor &projections,
                                         const Tensor &hx, const Tensor &weight,
                                         bool relu, bool reverse) {
  return Rnn::apply(projections, hx, weight, relu, reverse);
}
