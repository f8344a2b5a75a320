//===- recurrence_kernels.cpp - Recurrent layers on the CPU ---------------===//
//
// Each kernel computes a direction of a layer, given the products of its inputs
// and weights, over T steps of B rows and H states, on dense tensors without
// autograd. With p[t] the projections of a step, h the hidden state before the
// step, and w the weight of the hidden state:
//
//   LSTM: i, f, g, o = sigmoid, sigmoid, tanh, sigmoid of p[t] + h @ w.T
//         c' = f * c + i * g,  h' = o * tanh(c')
//   GRU:  r, z = sigmoid of the first two thirds of p[t] + h @ w.T + b
//         n = tanh(p[t] + r * m),  m: the last third of h @ w.T + b
//         h' = n + z * (h - n)
//   RNN:  h' = tanh or ReLU of p[t] + h @ w.T
//
// (torch/nn/modules/rnn.py). The gradient of an LSTM or GRU first computes, for
// all steps at once, the factors between the gradient of a state and those of
// the gates; each step is then a few multiplications and one matrix product.
//
//===----------------------------------------------------------------------===//

#include "ops/recurrence.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <torch/library.h>

using namespace torch_ltc;
using at::Tensor;

namespace {

/// The steps of a direction in the order in which they are computed.
struct Steps {
  int64_t count;
  bool reverse;

  int64_t operator[](int64_t i) const { return reverse ? count - 1 - i : i; }
  int64_t last() const { return (*this)[count - 1]; }
};

/// A view of one step that is moved from step to step, because creating a view
/// takes as long as a step's small kernels.
class Window {
public:
  explicit Window(const Tensor &steps)
      : view(steps.select(0, 0)), begin(view.storage_offset()),
        stride(steps.stride(0)) {}

  const Tensor &at(int64_t step) const {
    view.unsafeGetTensorImpl()->set_storage_offset(begin + step * stride);
    return view;
  }

private:
  Tensor view;
  int64_t begin, stride;
};

/// Returns a part of `gates`, whose last dim consists of gates of `size`
/// states: gate `begin`, or the gates from `begin` up to `end`.
Tensor gate(const Tensor &gates, int64_t size, int64_t begin, int64_t end = 0) {
  int64_t count = end ? end - begin : 1;
  return gates.narrow(-1, begin * size, count * size);
}

/// The states before each step: `first`, then all `states` but the last.
Tensor statesBefore(const Tensor &first, const Tensor &states, bool reverse) {
  int64_t rest = states.size(0) - 1;
  if (reverse)
    return at::cat({states.narrow(0, 1, rest), first.unsqueeze(0)});
  return at::cat({first.unsqueeze(0), states.narrow(0, 0, rest)});
}

/// The gradient of the hidden state after the last step.
Tensor lastGradient(const OptionalTensor &gradOutput,
                    const OptionalTensor &gradHy, const Tensor &hx,
                    int64_t last) {
  Tensor grad = exists(gradHy) ? gradHy->clone() : at::zeros_like(hx);
  return exists(gradOutput) ? grad.add_(gradOutput->select(0, last)) : grad;
}

/// The gradient of the hidden state before a step: the part that comes through
/// the step, plus the output's gradient at the previous step.
Tensor gradientBefore(const Tensor &gradGates, const Tensor &weight,
                      const std::optional<Window> &gradOutput,
                      const Steps &steps, int64_t i) {
  if (i == 0 || !gradOutput)
    return at::mm(gradGates, weight);
  return at::addmm(gradOutput->at(steps[i - 1]), gradGates, weight);
}

std::optional<Window> windowOf(const OptionalTensor &steps) {
  return exists(steps) ? std::optional<Window>(*steps) : std::nullopt;
}

Tensor asMatrix(const Tensor &steps) { return steps.flatten(0, 1); }

} // namespace

std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor>
torch_ltc::lstm(const Tensor &projections, const Tensor &hx, const Tensor &cx,
                const Tensor &weight, bool reverse) {
  int64_t size = hx.size(1);
  Steps steps{projections.size(0), reverse};
  Tensor gates = projections.clone(at::MemoryFormat::Contiguous);
  Tensor output = at::empty({steps.count, hx.size(0), size}, hx.options());
  Tensor cells = at::empty_like(output);
  const Window step(gates), inputAndForget(gate(gates, size, 0, 2));
  const Window input(gate(gates, size, 0)), forget(gate(gates, size, 1));
  const Window added(gate(gates, size, 2)), shown(gate(gates, size, 3));
  const Window before(output), cellBefore(cells), after(output), cell(cells);
  const Tensor transposed = weight.t();
  for (int64_t i = 0; i < steps.count; ++i) {
    int64_t t = steps[i], previous = i ? steps[i - 1] : 0;
    step.at(t).addmm_(i ? before.at(previous) : hx, transposed);
    inputAndForget.at(t).sigmoid_();
    added.at(t).tanh_();
    shown.at(t).sigmoid_();
    Tensor c = cell.at(t), h = after.at(t);
    at::mul_out(c, forget.at(t), i ? cellBefore.at(previous) : cx);
    c.addcmul_(input.at(t), added.at(t));
    at::tanh_out(h, c);
    h.mul_(shown.at(t));
  }
  return {output, after.at(steps.last()).clone(), cell.at(steps.last()).clone(),
          gates, cells};
}

std::tuple<Tensor, Tensor, Tensor, Tensor> torch_ltc::lstmBackward(
    const OptionalTensor &gradOutput, const OptionalTensor &gradHy,
    const OptionalTensor &gradCy, const Tensor &hx, const Tensor &cx,
    const Tensor &weight, const Tensor &output, const Tensor &gates,
    const Tensor &cells, bool reverse) {
  int64_t size = hx.size(1);
  Steps steps{output.size(0), reverse};
  Tensor i = gate(gates, size, 0), f = gate(gates, size, 1);
  Tensor g = gate(gates, size, 2), o = gate(gates, size, 3);
  Tensor states = at::tanh(cells);
  // The gradient of each gate's input, divided by the gradient of c' (for o: by
  // that of h'). The loop below multiplies it by that gradient, step by step.
  Tensor grads = at::empty_like(gates, at::MemoryFormat::Contiguous);
  gate(grads, size, 0).copy_(at::sigmoid_backward(g, i));
  gate(grads, size, 1)
      .copy_(at::sigmoid_backward(statesBefore(cx, cells, reverse), f));
  gate(grads, size, 2).copy_(at::tanh_backward(i, g));
  gate(grads, size, 3).copy_(at::sigmoid_backward(states, o));
  Tensor cellFactor = at::tanh_backward(o, states);

  Tensor gradH = lastGradient(gradOutput, gradHy, hx, steps.last());
  Tensor gradC = exists(gradCy) ? gradCy->clone() : at::zeros_like(cx);
  const Tensor gradOfEach = gradC.unsqueeze(1);
  const Window step(grads), shown(gate(grads, size, 3));
  const Window ofCell(grads.unflatten(-1, {4, size}).narrow(2, 0, 3));
  const Window factor(cellFactor), forget(f);
  const std::optional<Window> outer = windowOf(gradOutput);
  for (int64_t n = steps.count - 1; n >= 0; --n) {
    int64_t t = steps[n];
    gradC.addcmul_(gradH, factor.at(t));
    ofCell.at(t).mul_(gradOfEach);
    shown.at(t).mul_(gradH);
    gradC.mul_(forget.at(t));
    gradH = gradientBefore(step.at(t), weight, outer, steps, n);
  }
  Tensor gradWeight =
      at::mm(asMatrix(grads).t(), asMatrix(statesBefore(hx, output, reverse)));
  return {grads, gradH, gradC, gradWeight};
}

std::tuple<Tensor, Tensor, Tensor>
torch_ltc::gru(const Tensor &projections, const Tensor &hx,
               const Tensor &weight, const OptionalTensor &bias, bool reverse) {
  int64_t size = hx.size(1);
  Steps steps{projections.size(0), reverse};
  Tensor gates =
      at::empty({steps.count, hx.size(0), 4 * size}, projections.options());
  gate(gates, size, 0, 3).copy_(projections);
  Tensor output = at::empty({steps.count, hx.size(0), size}, hx.options());
  const Window reset(gate(gates, size, 0)), update(gate(gates, size, 1));
  const Window resetAndUpdate(gate(gates, size, 0, 2));
  const Window added(gate(gates, size, 2)), ofHidden(gate(gates, size, 3));
  const Window before(output), after(output);
  const Tensor transposed = weight.t();
  Tensor hidden = at::empty({hx.size(0), 3 * size}, hx.options());
  const Tensor hiddenOfBoth = gate(hidden, size, 0, 2);
  const Tensor hiddenOfAdded = gate(hidden, size, 2);
  for (int64_t i = 0; i < steps.count; ++i) {
    int64_t t = steps[i];
    const Tensor &h = i ? before.at(steps[i - 1]) : hx;
    exists(bias) ? at::addmm_out(hidden, *bias, h, transposed)
                 : at::mm_out(hidden, h, transposed);
    resetAndUpdate.at(t).add_(hiddenOfBoth).sigmoid_();
    ofHidden.at(t).copy_(hiddenOfAdded);
    const Tensor &n = added.at(t);
    n.addcmul_(reset.at(t), ofHidden.at(t)).tanh_();
    Tensor next = after.at(t);
    at::sub_out(next, h, n);
    next.mul_(update.at(t)).add_(n);
  }
  return {output, after.at(steps.last()).clone(), gates};
}

std::tuple<Tensor, Tensor, Tensor, Tensor>
torch_ltc::gruBackward(const OptionalTensor &gradOutput,
                       const OptionalTensor &gradHy, const Tensor &hx,
                       const Tensor &weight, const Tensor &output,
                       const Tensor &gates, bool reverse) {
  int64_t size = hx.size(1);
  Steps steps{output.size(0), reverse};
  Tensor r = gate(gates, size, 0), z = gate(gates, size, 1);
  Tensor n = gate(gates, size, 2), m = gate(gates, size, 3);
  Tensor before = statesBefore(hx, output, reverse);
  // The factors by which the gradient of h' is multiplied to get the gradients
  // of the inputs of r and z, of m, and of the input of n. The first three are
  // multiplied by the weight below.
  Tensor grads = at::empty_like(gates, at::MemoryFormat::Contiguous);
  Tensor ofN = at::tanh_backward(1 - z, n);
  gate(grads, size, 0).copy_(at::sigmoid_backward(ofN * m, r));
  gate(grads, size, 1).copy_(at::sigmoid_backward(before - n, z));
  gate(grads, size, 2).copy_(ofN * r);
  gate(grads, size, 3).copy_(ofN);

  Tensor gradH = lastGradient(gradOutput, gradHy, hx, steps.last());
  const Window ofEach(grads.unflatten(-1, {4, size})), update(z);
  const Window weighted(gate(grads, size, 0, 3));
  const std::optional<Window> outer = windowOf(gradOutput);
  for (int64_t i = steps.count - 1; i >= 0; --i) {
    int64_t t = steps[i];
    ofEach.at(t).mul_(gradH.unsqueeze(1));
    Tensor through = gradH.mul_(update.at(t));
    gradH =
        gradientBefore(weighted.at(t), weight, outer, steps, i).add_(through);
  }
  Tensor ofHidden = asMatrix(gate(grads, size, 0, 3));
  return {at::cat({gate(grads, size, 0, 2), gate(grads, size, 3)}, -1), gradH,
          at::mm(ofHidden.t(), asMatrix(before)), ofHidden.sum(0)};
}

std::tuple<Tensor, Tensor> torch_ltc::rnn(const Tensor &projections,
                                          const Tensor &hx,
                                          const Tensor &weight, bool relu,
                                          bool reverse) {
  Steps steps{projections.size(0), reverse};
  Tensor output = projections.clone(at::MemoryFormat::Contiguous);
  const Window before(output), after(output);
  const Tensor transposed = weight.t();
  for (int64_t i = 0; i < steps.count; ++i) {
    Tensor h = after.at(steps[i]);
    h.addmm_(i ? before.at(steps[i - 1]) : hx, transposed);
    relu ? h.relu_() : h.tanh_();
  }
  return {output, after.at(steps.last()).clone()};
}

std::tuple<Tensor, Tensor, Tensor>
torch_ltc::rnnBackward(const OptionalTensor &gradOutput,
                       const OptionalTensor &gradHy, const Tensor &hx,
                       const Tensor &weight, const Tensor &output, bool relu,
                       bool reverse) {
  Steps steps{output.size(0), reverse};
  Tensor grads = at::empty_like(output, at::MemoryFormat::Contiguous);
  Tensor gradH = lastGradient(gradOutput, gradHy, hx, steps.last());
  const Window step(grads), state(output);
  const std::optional<Window> outer = windowOf(gradOutput);
  for (int64_t i = steps.count - 1; i >= 0; --i) {
    int64_t t = steps[i];
    Tensor grad = step.at(t);
    relu ? at::threshold_backward_out(grad, gradH, state.at(t), 0)
         : at::tanh_backward_out(grad, gradH, state.at(t));
    gradH = gradientBefore(grad, weight, outer, steps, i);
  }
  Tensor gradWeight =
      at::mm(asMatrix(grads).t(), asMatrix(statesBefore(hx, output, reverse)));
  return {grads, gradH, gradWeight};
}

namespace {

TORCH_LIBRARY_FRAGMENT(torch_ltc, library) {
  library.def("lstm(Tensor projections, Tensor hx, Tensor cx, Tensor weight, "
              "bool reverse) -> (Tensor, Tensor, Tensor, Tensor, Tensor)");
  library.def("lstm_backward(Tensor? grad_output, Tensor? grad_hy, Tensor? "
              "grad_cy, Tensor hx, Tensor cx, Tensor weight, Tensor output, "
              "Tensor gates, Tensor cells, bool reverse) -> (Tensor, Tensor, "
              "Tensor, Tensor)");
  library.def("gru(Tensor projections, Tensor hx, Tensor weight, Tensor? bias, "
              "bool reverse) -> (Tensor, Tensor, Tensor)");
  library.def("gru_backward(Tensor? grad_output, Tensor? grad_hy, Tensor hx, "
              "Tensor weight, Tensor output, Tensor gates, bool reverse) -> "
              "(Tensor, Tensor, Tensor, Tensor)");
  library.def("rnn(Tensor projections, Tensor hx, Tensor weight, bool relu, "
              "bool reverse) -> (Tensor, Tensor)");
  library.def("rnn_backward(Tensor? grad_output, Tensor? grad_hy, Tensor hx, "
              "Tensor weight, Tensor output, bool relu, bool reverse) -> "
              "(Tensor, Tensor, Tensor)");
  auto eager = c10::DispatchKey::CompositeExplicitAutograd;
  library.impl("lstm", torch::dispatch(eager, TORCH_FN(lstm)));
  library.impl("lstm_backward", torch::dispatch(eager, TORCH_FN(lstmBackward)));
  library.impl("gru", torch::dispatch(eager, TORCH_FN(gru)));
  library.impl("gru_backward", torch::dispatch(eager, TORCH_FN(gruBackward)));
  library.impl("rnn", torch::dispatch(eager, TORCH_FN(rnn)));
  library.impl("rnn_backward", torch::dispatch(eager, TORCH_FN(rnnBackward)));
}

} // namespace
