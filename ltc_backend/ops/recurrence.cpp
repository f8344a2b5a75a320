//===- recurrence.cpp - LSTM, GRU and RNN layers --------------------------===//
//
// Each direction of a layer is one op for all steps, and its gradient another
// (recurrence.h); the products of inputs and weights precede the op. For other
// compilers, these ops are decomposed (DecomposeRecurrence.cpp).
//
//===----------------------------------------------------------------------===//

#include "ops/recurrence.h"

#include "ops/packed_sequences.h"
#include "ops/recurrence_gradients.h"

#include "fallback/eager_fallback.h"
#include "memory/lazy_device.h"
#include "ops/registration.h"
#include "tracing/typed_op.h"
#include "tracing/wrapped_value.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/ops/gru_native.h>
#include <ATen/ops/lstm_native.h>
#include <ATen/ops/rnn_relu_native.h>
#include <ATen/ops/rnn_tanh_native.h>
#include <torch/csrc/autograd/variable.h>
#include <torch/library.h>

using namespace torch_ltc;
using at::Tensor;
using torch::autograd::variable_list;

namespace {

/// Returns the weight in the form that is saved for the gradient. torch's own
/// ops save a view (the weight's transpose), which keeps its memory even if
/// another tensor is assigned to `weight.data` later.
Tensor savedWeight(const Tensor &weight) {
  bool isSaved = at::GradMode::is_enabled() && weight.requires_grad();
  return isSaved ? at::alias(weight) : weight;
}

/// The weights and biases of one direction of a layer.
struct Weights {
  Tensor ofInput, ofHidden, inputBias, hiddenBias;
};

/// The arguments that all recurrent layers share.
struct Network {
  at::TensorList parameters;
  bool hasBiases;
  int64_t numLayers;
  double dropout;
  bool train, bidirectional, batchFirst = false;

  int64_t numDirections() const { return bidirectional ? 2 : 1; }
  size_t numStates() const { return size_t(numLayers * numDirections()); }
  size_t weightsEach() const { return hasBiases ? 4 : 2; }

  Weights weights(size_t state) const {
    at::TensorList own = parameters.slice(state * weightsEach(), weightsEach());
    return {own[0], own[1], hasBiases ? own[2] : Tensor(),
            hasBiases ? own[3] : Tensor()};
  }
};

bool isAutocastOn() {
  return !c10::impl::tls_is_dispatch_key_excluded(autocastKey);
}

bool hasSizes(const Tensor &tensor, at::IntArrayRef sizes,
              at::ScalarType dtype) {
  return isPlainOperand(tensor, dtype) && tensor.sizes() == sizes;
}

/// Whether all tensors are as torch's module creates and accepts them. Other
/// calls use PyTorch's implementation. 16-bit floats are excluded, because each
/// of torch's ops rounds its result. Autocast is excluded, because it casts
/// operands to 16-bit floats.
bool isPlain(const Network &network, const Tensor &input, int64_t batch,
             at::TensorList states, int64_t numGates) {
  at::ScalarType dtype = input.scalar_type();
  if ((dtype != at::ScalarType::Float && dtype != at::ScalarType::Double) ||
      !isPlainOperand(input, dtype) || !input.numel() || states[0].dim() != 3 ||
      network.numLayers < 1 ||
      network.parameters.size() !=
          network.numStates() * network.weightsEach() ||
      isAnyFallbackForced() || isAutocastOn())
    return false;
  int64_t size = states[0].size(2), gates = numGates * size;
  for (const Tensor &state : states)
    if (!hasSizes(state, {int64_t(network.numStates()), batch, size}, dtype))
      return false;
  int64_t inputSize = input.size(-1);
  for (size_t i = 0; i < network.numStates(); ++i) {
    if (i == size_t(network.numDirections()))
      inputSize = network.numDirections() * size;
    Weights weights = network.weights(i);
    if (!hasSizes(weights.ofInput, {gates, inputSize}, dtype) ||
        !hasSizes(weights.ofHidden, {gates, size}, dtype))
      return false;
    if (network.hasBiases && (!hasSizes(weights.inputBias, {gates}, dtype) ||
                              !hasSizes(weights.hiddenBias, {gates}, dtype)))
      return false;
  }
  return true;
}

bool isPlainPadded(const Network &network, const Tensor &input,
                   at::TensorList states, int64_t numGates) {
  return input.dim() == 3 && !hasSymbolicSizes(input) &&
         isPlain(network, input, input.size(network.batchFirst ? 0 : 1), states,
                 numGates);
}

/// Runs the layers and returns the last layer's output. `direction(input,
/// state, reverse)` returns the output of one direction and stores its last
/// states.
template <typename Direction>
Tensor runLayers(const Network &network, const Tensor &input,
                 Direction direction) {
  Tensor layerInput = network.batchFirst ? input.transpose(0, 1) : input;
  for (int64_t layer = 0; layer < network.numLayers; ++layer) {
    std::vector<Tensor> outputs;
    for (int64_t d = 0; d < network.numDirections(); ++d)
      outputs.push_back(direction(
          layerInput, size_t(layer * network.numDirections() + d), d == 1));
    layerInput = outputs.size() == 1 ? outputs[0] : at::cat(outputs, -1);
    if (network.dropout != 0 && network.train && layer + 1 < network.numLayers)
      layerInput = at::dropout(layerInput, network.dropout, /*train=*/true);
  }
  return network.batchFirst ? layerInput.transpose(0, 1) : layerInput;
}

/// A projection so large that an activation has its limit for any states.
constexpr double kSaturating = 1e30;

/// Returns the projections for the steps after a sequence's end. In these
/// steps, the cell keeps its value: the input gate's sigmoid is 0, the forget
/// gate's is 1.
Tensor fillerOfLstm(const Tensor &states) {
  int64_t size = states.size(-1);
  Tensor filler = at::zeros({1, 4 * size}, states.options().device(at::kCPU));
  filler.narrow(1, 0, size).fill_(-kSaturating);
  filler.narrow(1, size, size).fill_(kSaturating);
  return filler.to(states.device());
}

Tensor fillerOfGru(const Tensor &states) {
  return at::zeros({1, 3 * states.size(-1)}, states.options());
}

/// The states after a sequence's end are 0 with ReLU. Otherwise they could grow
/// without bounds, because nothing limits ReLU's results.
Tensor fillerOfRnn(const Tensor &states, bool relu) {
  return at::full({1, states.size(-1)}, relu ? -kSaturating : 0,
                  states.options());
}

OptionalTensor sumOfBiases(const Network &network, const Weights &weights) {
  if (!network.hasBiases)
    return std::nullopt;
  return weights.inputBias + weights.hiddenBias;
}

/// `packing`: null for padded sequences.
std::tuple<Tensor, Tensor, Tensor> runLstm(const Network &network,
                                           const Tensor &input,
                                           at::TensorList hx,
                                           const Packing *packing) {
  std::vector<Tensor> hy, cy;
  // oneDNN's layers, which torch uses for float32, save the weight itself.
  bool isFloat = input.scalar_type() == at::kFloat;
  auto direction = [&](const Tensor &layerInput, size_t state, bool reverse) {
    Weights weights = network.weights(state);
    Tensor projections =
        at::linear(layerInput, weights.ofInput, sumOfBiases(network, weights));
    if (packing)
      projections = packing->pad(projections, fillerOfLstm(hx[0]), reverse);
    variable_list results = lstmWithGradient(
        projections, hx[0].select(0, int64_t(state)),
        hx[1].select(0, int64_t(state)),
        isFloat ? weights.ofHidden : savedWeight(weights.ofHidden),
        reverse && !packing);
    hy.push_back(packing ? packing->last(results[0]) : results[1]);
    cy.push_back(results[2]);
    return packing ? packing->pack(results[0], reverse) : results[0];
  };
  Tensor output = runLayers(network, input, direction);
  return {output, at::stack(hy), at::stack(cy)};
}

std::tuple<Tensor, Tensor> runGru(const Network &network, const Tensor &input,
                                  const Tensor &hx, const Packing *packing) {
  std::vector<Tensor> hy;
  auto direction = [&](const Tensor &layerInput, size_t state, bool reverse) {
    Weights weights = network.weights(state);
    Tensor projections =
        at::linear(layerInput, weights.ofInput, optional(weights.inputBias));
    if (packing)
      projections = packing->pad(projections, fillerOfGru(hx), reverse);
    variable_list results =
        gruWithGradient(projections, hx.select(0, int64_t(state)),
                        savedWeight(weights.ofHidden),
                        optional(weights.hiddenBias), reverse && !packing);
    hy.push_back(packing ? packing->last(results[0]) : results[1]);
    return packing ? packing->pack(results[0], reverse) : results[0];
  };
  Tensor output = runLayers(network, input, direction);
  return {output, at::stack(hy)};
}

std::tuple<Tensor, Tensor> runRnn(const Network &network, const Tensor &input,
                                  const Tensor &hx, bool relu,
                                  const Packing *packing) {
  std::vector<Tensor> hy;
  auto direction = [&](const Tensor &layerInput, size_t state, bool reverse) {
    Weights weights = network.weights(state);
    Tensor projections =
        at::linear(layerInput, weights.ofInput, sumOfBiases(network, weights));
    if (packing)
      projections = packing->pad(projections, fillerOfRnn(hx, relu), reverse);
    variable_list results = rnnWithGradient(
        projections, hx.select(0, int64_t(state)),
        savedWeight(weights.ofHidden), relu, reverse && !packing);
    hy.push_back(packing ? packing->last(results[0]) : results[1]);
    return packing ? packing->pack(results[0], reverse) : results[0];
  };
  Tensor output = runLayers(network, input, direction);
  return {output, at::stack(hy)};
}

std::tuple<Tensor, Tensor, Tensor>
lstmInput(const Tensor &input, at::TensorList hx, at::TensorList parameters,
          bool hasBiases, int64_t numLayers, double dropout, bool train,
          bool bidirectional, bool batchFirst) {
  Network network{parameters, hasBiases,     numLayers, dropout,
                  train,      bidirectional, batchFirst};
  if (hx.size() != 2 || !isPlainPadded(network, input, hx, /*numGates=*/4))
    return at::native::lstm(input, hx, parameters, hasBiases, numLayers,
                            dropout, train, bidirectional, batchFirst);
  return runLstm(network, input, hx, nullptr);
}

std::tuple<Tensor, Tensor> gruInput(const Tensor &input, const Tensor &hx,
                                    at::TensorList parameters, bool hasBiases,
                                    int64_t numLayers, double dropout,
                                    bool train, bool bidirectional,
                                    bool batchFirst) {
  Network network{parameters, hasBiases,     numLayers, dropout,
                  train,      bidirectional, batchFirst};
  if (!isPlainPadded(network, input, hx, /*numGates=*/3))
    return at::native::gru(input, hx, parameters, hasBiases, numLayers, dropout,
                           train, bidirectional, batchFirst);
  return runGru(network, input, hx, nullptr);
}

std::tuple<Tensor, Tensor, Tensor>
lstmPacked(const Tensor &data, const Tensor &batchSizes, at::TensorList hx,
           at::TensorList parameters, bool hasBiases, int64_t numLayers,
           double dropout, bool train, bool bidirectional) {
  Network network{parameters, hasBiases, numLayers,
                  dropout,    train,     bidirectional};
  std::optional<Packing> packing = Packing::of(batchSizes, data, bidirectional);
  if (!packing || hx.size() != 2 ||
      !isPlain(network, data, packing->batch(), hx, /*numGates=*/4))
    return at::native::lstm(data, batchSizes, hx, parameters, hasBiases,
                            numLayers, dropout, train, bidirectional);
  return runLstm(network, data, hx, &*packing);
}

std::tuple<Tensor, Tensor> gruPacked(const Tensor &data,
                                     const Tensor &batchSizes, const Tensor &hx,
                                     at::TensorList parameters, bool hasBiases,
                                     int64_t numLayers, double dropout,
                                     bool train, bool bidirectional) {
  Network network{parameters, hasBiases, numLayers,
                  dropout,    train,     bidirectional};
  std::optional<Packing> packing = Packing::of(batchSizes, data, bidirectional);
  if (!packing || !isPlain(network, data, packing->batch(), hx, /*numGates=*/3))
    return at::native::gru(data, batchSizes, hx, parameters, hasBiases,
                           numLayers, dropout, train, bidirectional);
  return runGru(network, data, hx, &*packing);
}

/// rnn_relu.input if `relu`, else rnn_tanh.input.
template <bool relu>
std::tuple<Tensor, Tensor>
rnnInput(const Tensor &input, const Tensor &hx, at::TensorList parameters,
         bool hasBiases, int64_t numLayers, double dropout, bool train,
         bool bidirectional, bool batchFirst) {
  Network network{parameters, hasBiases,     numLayers, dropout,
                  train,      bidirectional, batchFirst};
  if (isPlainPadded(network, input, hx, /*numGates=*/1))
    return runRnn(network, input, hx, relu, nullptr);
  if constexpr (relu)
    return at::native::rnn_relu(input, hx, parameters, hasBiases, numLayers,
                                dropout, train, bidirectional, batchFirst);
  else
    return at::native::rnn_tanh(input, hx, parameters, hasBiases, numLayers,
                                dropout, train, bidirectional, batchFirst);
}

template <bool relu>
std::tuple<Tensor, Tensor>
rnnPacked(const Tensor &data, const Tensor &batchSizes, const Tensor &hx,
          at::TensorList parameters, bool hasBiases, int64_t numLayers,
          double dropout, bool train, bool bidirectional) {
  Network network{parameters, hasBiases, numLayers,
                  dropout,    train,     bidirectional};
  std::optional<Packing> packing = Packing::of(batchSizes, data, bidirectional);
  if (packing && isPlain(network, data, packing->batch(), hx, /*numGates=*/1))
    return runRnn(network, data, hx, relu, &*packing);
  if constexpr (relu)
    return at::native::rnn_relu(data, batchSizes, hx, parameters, hasBiases,
                                numLayers, dropout, train, bidirectional);
  else
    return at::native::rnn_tanh(data, batchSizes, hx, parameters, hasBiases,
                                numLayers, dropout, train, bidirectional);
}

} // namespace

void torch_ltc::registerRecurrence(torch::Library &library) {
  library.impl("lstm.input", TORCH_FN(lstmInput));
  library.impl("gru.input", TORCH_FN(gruInput));
  library.impl("lstm.data", TORCH_FN(lstmPacked));
  library.impl("gru.data", TORCH_FN(gruPacked));
  library.impl("rnn_relu.input", TORCH_FN(rnnInput<true>));
  library.impl("rnn_tanh.input", TORCH_FN(rnnInput<false>));
  library.impl("rnn_relu.data", TORCH_FN(rnnPacked<true>));
  library.impl("rnn_tanh.data", TORCH_FN(rnnPacked<false>));
}
