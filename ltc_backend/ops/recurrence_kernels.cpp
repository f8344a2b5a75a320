//===- recurrence_kernels.cpp - Recurrent layers on the CPU ---------------===//
//
// A direction of a layer, given the products of its inputs and weights, over T
// steps of B rows and H states, on dense tensors without autograd. With p[t]
// the projections of a step, h its hidden state before it, and w the weight of
// the hidden state:
//
//   LSTM: i, f, g, o = sigmoid, sigmoid, tanh, sigmoid of p[t] + h @ w.T
//         c' = f * c + i * g,  h' = o * tanh(c')
//   GRU:  r, z = sigmoid of the first two thirds of p[t] + h @ w.T + b
//         n = tanh(p[t] + r * m),  m: the last third of h @ w.T + b
//         h' = n + z * (h - n)
//
// (torch/nn/modules/rnn.py). A gradient first computes, for all steps at once,
// what the gradient of a state is multiplied with to be that of a gate: each
// step then is a few multiplications and one matrix product.
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

/// Of a tensor whose last dim are gates of `size` states: gate `begin`, or
/// those before `end`.
Tensor gate(const Tensor &gates, int64_t size, int64_t begin, int64_t end = 0) {
  int64_t count = end ? end - begin : 1;
  return gates.narrow(-1, begin * size, count * size);
}

/// For each step the state before it: `first`, then those of `states`.
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

/// The gradient of the hidden state before a step: what comes through the
/// step, and what the step before gave to the output.
Tensor gradientBefore(const Tensor &gradGates, const Tensor &weight,
                      const OptionalTensor &gradOutput, const Steps &steps,
                      int64_t i) {
  if (i == 0 || !exists(gradOutput))
    return at::mm(gradGates, weight);
  return at::addmm(gradOutput->select(0, steps[i - 1]), gradGates, weight);
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
  Tensor h = hx, c = cx, transposed = weight.t();
  for (int64_t i = 0; i < steps.count; ++i) {
    Tensor step = gates.select(0, steps[i]);
    step.addmm_(h, transposed);
    gate(step, size, 0, 2).sigmoid_();
    gate(step, size, 2).tanh_();
    gate(step, size, 3).sigmoid_();
    Tensor cell = cells.select(0, steps[i]);
    at::mul_out(cell, gate(step, size, 1), c);
    cell.addcmul_(gate(step, size, 0), gate(step, size, 2));
    h = output.select(0, steps[i]);
    c = cell;
    at::tanh_out(h, c);
    h.mul_(gate(step, size, 3));
  }
  return {output, h.clone(), c.clone(), gates, cells};
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
  // Factors of the gradients of c', for o of that of h'.
  Tensor grads = at::empty_like(gates, at::MemoryFormat::Contiguous);
  gate(grads, size, 0).copy_(at::sigmoid_backward(g, i));
  gate(grads, size, 1)
      .copy_(at::sigmoid_backward(statesBefore(cx, cells, reverse), f));
  gate(grads, size, 2).copy_(at::tanh_backward(i, g));
  gate(grads, size, 3).copy_(at::sigmoid_backward(states, o));
  Tensor cellFactor = at::tanh_backward(o, states);

  Tensor gradH = lastGradient(gradOutput, gradHy, hx, steps.last());
  Tensor gradC = exists(gradCy) ? gradCy->clone() : at::zeros_like(cx);
  for (int64_t n = steps.count - 1; n >= 0; --n) {
    int64_t t = steps[n];
    Tensor step = grads.select(0, t);
    gradC.addcmul_(gradH, cellFactor.select(0, t));
    Tensor ofCell = step.unflatten(-1, {4, size}).narrow(1, 0, 3);
    ofCell.mul_(gradC.unsqueeze(1));
    gate(step, size, 3).mul_(gradH);
    gradC.mul_(f.select(0, t));
    gradH = gradientBefore(step, weight, gradOutput, steps, n);
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
  Tensor h = hx, transposed = weight.t();
  for (int64_t i = 0; i < steps.count; ++i) {
    Tensor hidden =
        exists(bias) ? at::addmm(*bias, h, transposed) : at::mm(h, transposed);
    Tensor step = gates.select(0, steps[i]);
    gate(step, size, 0, 2).add_(gate(hidden, size, 0, 2)).sigmoid_();
    gate(step, size, 3).copy_(gate(hidden, size, 2));
    Tensor n = gate(step, size, 2);
    n.addcmul_(gate(step, size, 0), gate(step, size, 3)).tanh_();
    Tensor next = output.select(0, steps[i]);
    at::sub_out(next, h, n);
    next.mul_(gate(step, size, 1)).add_(n);
    h = next;
  }
  return {output, h.clone(), gates};
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
  // Factors of the gradients of h': of r, z and m, which the weight
  // multiplies, then of n.
  Tensor grads = at::empty_like(gates, at::MemoryFormat::Contiguous);
  Tensor ofN = at::tanh_backward(1 - z, n);
  gate(grads, size, 0).copy_(at::sigmoid_backward(ofN * m, r));
  gate(grads, size, 1).copy_(at::sigmoid_backward(before - n, z));
  gate(grads, size, 2).copy_(ofN * r);
  gate(grads, size, 3).copy_(ofN);

  Tensor gradH = lastGradient(gradOutput, gradHy, hx, steps.last());
  for (int64_t i = steps.count - 1; i >= 0; --i) {
    int64_t t = steps[i];
    Tensor step = grads.select(0, t);
    step.unflatten(-1, {4, size}).mul_(gradH.unsqueeze(1));
    Tensor through = gradH.mul_(z.select(0, t));
    gradH = gradientBefore(gate(step, size, 0, 3), weight, gradOutput, steps, i)
                .add_(through);
  }
  Tensor ofHidden = asMatrix(gate(grads, size, 0, 3));
  return {at::cat({gate(grads, size, 0, 2), gate(grads, size, 3)}, -1), gradH,
          at::mm(ofHidden.t(), asMatrix(before)), ofHidden.sum(0)};
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
  auto eager = c10::DispatchKey::CompositeExplicitAutograd;
  library.impl("lstm", torch::dispatch(eager, TORCH_FN(lstm)));
  library.impl("lstm_backward", torch::dispatch(eager, TORCH_FN(lstmBackward)));
  library.impl("gru", torch::dispatch(eager, TORCH_FN(gru)));
  library.impl("gru_backward", torch::dispatch(eager, TORCH_FN(gruBackward)));
}

} // namespace
