//===- lstm_cell.cpp - An LSTM cell's gates as one op ---------------------===//
//
// Recurrent models call a cell for each time step, so the number of the cell's
// ops determines the cost of tracing. Here, all ops after the two matrix
// products are one op, and their gradient is another; the compiler decomposes
// both. The formula, with the gates in torch's order (torch/nn/modules/rnn.py):
//
//   i, f, g, o = sigmoid, sigmoid, tanh, sigmoid of the gates' quarters
//   cy = f * cx + i * g,  hy = o * tanh(cy)
//
//===----------------------------------------------------------------------===//

#include "ops/registration.h"
#include "tracing/typed_op.h"
#include "tracing/wrapped_value.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/ops/lstm_cell_native.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/library.h>

using namespace torch_ltc;
using at::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::Variable;
using torch::autograd::variable_list;

namespace {

struct Activations {
  Tensor i, f, g, o;

  explicit Activations(const Tensor &gates) {
    std::vector<Tensor> quarters = at::unsafe_chunk(gates, 4, 1);
    i = at::sigmoid(quarters[0]);
    f = at::sigmoid(quarters[1]);
    g = at::tanh(quarters[2]);
    o = at::sigmoid(quarters[3]);
  }
};

// Implementations with torch's ops, for eager calls.

/// Returns hy, cy and the gates before their activations.
std::tuple<Tensor, Tensor, Tensor> lstmGates(const Tensor &inputGates,
                                             const Tensor &hiddenGates,
                                             const Tensor &cx) {
  Tensor gates = at::add(inputGates, hiddenGates);
  Activations a(gates);
  Tensor cy = at::add(at::mul(a.f, cx), at::mul(a.i, a.g));
  return {at::mul(a.o, at::tanh(cy)), cy, gates};
}

/// Returns the gradients of the gates and of cx, which can be differentiated.
std::tuple<Tensor, Tensor>
lstmGatesBackward(const std::optional<Tensor> &gradHy,
                  const std::optional<Tensor> &gradCy, const Tensor &gates,
                  const Tensor &cx, const Tensor &cy) {
  Activations a(gates);
  Tensor t = at::tanh(cy), o = at::zeros_like(cy);
  Tensor state = gradCy && gradCy->defined() ? *gradCy : at::zeros_like(cy);
  if (gradHy && gradHy->defined()) {
    o = *gradHy * t * a.o * (1 - a.o);
    state = state + *gradHy * a.o * (1 - t * t);
  }
  Tensor i = state * a.g * a.i * (1 - a.i);
  Tensor f = state * cx * a.f * (1 - a.f);
  Tensor g = state * a.i * (1 - a.g * a.g);
  return {at::cat({i, f, g, o}, 1), state * a.f};
}

TORCH_LIBRARY_FRAGMENT(torch_ltc, library) {
  library.def("lstm_gates(Tensor input_gates, Tensor hidden_gates, Tensor cx) "
              "-> (Tensor, Tensor, Tensor)");
  library.def("lstm_gates_backward(Tensor? grad_hy, Tensor? grad_cy, Tensor "
              "gates, Tensor cx, Tensor cy) -> (Tensor, Tensor)");
  auto eager = c10::DispatchKey::CompositeExplicitAutograd;
  library.impl("lstm_gates", torch::dispatch(eager, TORCH_FN(lstmGates)));
  library.impl("lstm_gates_backward",
               torch::dispatch(eager, TORCH_FN(lstmGatesBackward)));
}

class LstmGates : public torch::autograd::Function<LstmGates> {
public:
  static variable_list forward(AutogradContext *context,
                               const Variable &inputGates,
                               const Variable &hiddenGates,
                               const Variable &cx) {
    at::AutoDispatchBelowADInplaceOrView below;
    auto [hy, cy, gates] = typedOp<&lstmGates>("torch_ltc::lstm_gates")
                               .call(inputGates, hiddenGates, cx);
    context->save_for_backward({inputGates, hiddenGates, cx, cy, gates});
    context->mark_non_differentiable({gates});
    context->set_materialize_grads(false);
    return {hy, cy, gates};
  }

  static variable_list backward(AutogradContext *context,
                                variable_list gradients) {
    variable_list saved = context->get_saved_variables();
    const Variable &inputGates = saved[0], &hiddenGates = saved[1];
    const Variable &cx = saved[2], &cy = saved[3], &gates = saved[4];
    if (!gradients[0].defined() && !gradients[1].defined())
      return {Variable(), Variable(), Variable()};
    Tensor gradGates, gradCx;
    if (at::GradMode::is_enabled()) {
      // The gradient will be differentiated, so it is computed with single ops.
      std::tie(gradGates, gradCx) = lstmGatesBackward(
          gradients[0], gradients[1], inputGates + hiddenGates, cx, cy);
    } else {
      std::tie(gradGates, gradCx) =
          typedOp<&lstmGatesBackward>("torch_ltc::lstm_gates_backward")
              .call(gradients[0], gradients[1], gates, cx, cy);
    }
    return {gradGates, gradGates, gradCx};
  }
};

std::tuple<Tensor, Tensor> lstmCell(const Tensor &input, at::TensorList hx,
                                    const Tensor &weightIh,
                                    const Tensor &weightHh,
                                    const std::optional<Tensor> &biasIh,
                                    const std::optional<Tensor> &biasHh) {
  at::ScalarType dtype = input.scalar_type();
  // 16-bit floats are excluded, because each of torch's ops rounds its result.
  bool plain =
      (dtype == at::ScalarType::Float || dtype == at::ScalarType::Double) &&
      isPlainOperand(input, dtype) && hx.size() == 2 && input.dim() == 2 &&
      hx[0].dim() == 2 && hx[0].sizes() == hx[1].sizes() &&
      hx[0].size(0) == input.size(0) && weightIh.dim() == 2 &&
      weightIh.size(0) == 4 * hx[0].size(1) &&
      weightIh.size(1) == input.size(1);
  for (const Tensor &tensor : {weightIh, weightHh})
    plain = plain && isPlainOperand(tensor, dtype);
  for (const Tensor &state : hx)
    plain = plain && isPlainOperand(state, dtype);
  for (const auto &bias : {biasIh, biasHh})
    plain =
        plain && (!bias || !bias->defined() || isPlainOperand(*bias, dtype));
  if (!plain)
    return at::native::lstm_cell(input, hx, weightIh, weightHh, biasIh, biasHh);
  Tensor hiddenGates = at::linear(hx[0], weightHh, biasHh);
  Tensor inputGates = at::linear(input, weightIh, biasIh);
  variable_list results = LstmGates::apply(inputGates, hiddenGates, hx[1]);
  return {results[0], results[1]};
}

} // namespace

void torch_ltc::registerLstmCell(torch::Library &library) {
  library.impl("lstm_cell", TORCH_FN(lstmCell));
}
