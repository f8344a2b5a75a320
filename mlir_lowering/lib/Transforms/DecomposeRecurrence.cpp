//===- DecomposeRecurrence.cpp - Recurrent layers as their steps ----------===//
//
// Formulas: ltc_backend/ops/recurrence_kernels.cpp.
//
//===----------------------------------------------------------------------===//

#include "FormulaBuilder.h"

#include "torch_ltc/Dialect/Torch/TorchOps_recurrence.h"

using namespace mlir;
using namespace mlir::torch_ltc;
using namespace mlir::torch_ltc::torch;

namespace {

/// The steps of a direction in the order in which they are computed.
struct Steps {
  int64_t count;
  bool reverse;

  int64_t operator[](int64_t i) const { return reverse ? count - 1 - i : i; }
};

} // namespace

// Gate `begin`, or the gates [begin, end), of a tensor whose last dimension
// consists of gates of `size` states.
static Value gate(FormulaBuilder &b, Value gates, int64_t size, int64_t begin,
                  int64_t end = 0) {
  int64_t count = end ? end - begin : 1;
  return b.slice(gates, b.rank(gates) - 1, begin * size,
                 (begin + count) * size);
}

static Value multiplyTransposed(FormulaBuilder &b, Value x, Value weight) {
  return b.mm(x, b.permute(weight, {1, 0}));
}

static Value asMatrix(FormulaBuilder &b, Value steps) {
  ArrayRef<int64_t> sizes = b.sizes(steps);
  return b.view(steps, {sizes[0] * sizes[1], sizes[2]});
}

// Concatenates the values of the steps along a new first dimension.
static Value stack(FormulaBuilder &b, ArrayRef<Value> steps) {
  SmallVector<Value> rows;
  for (Value step : steps)
    rows.push_back(b.unsqueeze(step, 0));
  SmallVector<int64_t> sizes(b.sizes(rows.front()));
  sizes[0] = steps.size();
  return b.concatenate(rows, 0, sizes);
}

// The state before each step: `first`, and then the states after the previous
// steps.
static Value statesBefore(FormulaBuilder &b, Value first, Value states,
                          bool reverse) {
  ArrayRef<int64_t> sizes = b.sizes(states);
  Value begin = b.unsqueeze(first, 0);
  if (sizes[0] == 1)
    return begin;
  Value rest = reverse ? b.slice(states, 0, 1, sizes[0])
                       : b.slice(states, 0, 0, sizes[0] - 1);
  if (reverse)
    return b.concatenate({rest, begin}, 0, sizes);
  return b.concatenate({begin, rest}, 0, sizes);
}

/// The gradient of the hidden weight from the gradients of the gates, as a
/// matrix, and the states that the gates read, both of all steps.
static Value weightGradient(FormulaBuilder &b, Value gates, Value states) {
  return b.mm(b.permute(gates, {1, 0}), asMatrix(b, states));
}

static Value concatenateGates(FormulaBuilder &b, ArrayRef<Value> gates) {
  SmallVector<int64_t> sizes(b.sizes(gates.front()));
  sizes.back() = 0;
  for (Value value : gates)
    sizes.back() += b.sizes(value).back();
  return b.concatenate(gates, sizes.size() - 1, sizes);
}

// The derivative of an activation, computed from its result, the gate.
static Value sigmoidSlope(FormulaBuilder &b, Value gate) {
  return b.mul(gate, b.sub(1, gate));
}
static Value tanhSlope(FormulaBuilder &b, Value gate) {
  return b.sub(1, b.square(gate));
}

// Adds the gradient of the output of step `index` to `gradient`, which may be
// null.
static Value addStep(FormulaBuilder &b, Value gradient, Value gradOutput,
                     int64_t index) {
  if (b.isNone(gradOutput))
    return gradient;
  Value step = b.select(gradOutput, 0, index);
  return gradient ? b.add(gradient, step) : step;
}

// The gradient of the state after the last step.
static Value lastGradient(FormulaBuilder &b, Value gradOutput, Value gradHy,
                          Value hx, int64_t last) {
  Value grad = b.isNone(gradHy) ? Value() : gradHy;
  grad = addStep(b, grad, gradOutput, last);
  return grad ? grad : b.zeros(b.sizes(hx), b.dtype(hx));
}

static LogicalResult decomposeLstm(TorchLtcLstmOp op, FormulaBuilder &b) {
  Value projections = op.getProjections(), h = op.getHx(), c = op.getCx();
  int64_t size = b.sizes(h)[1];
  Steps steps{b.sizes(projections)[0], b.boolean(op.getReverse())};
  SmallVector<Value> output(steps.count), gates(steps.count),
      cells(steps.count);
  for (int64_t n = 0; n < steps.count; ++n) {
    int64_t t = steps[n];
    Value sums = b.add(b.select(projections, 0, t),
                       multiplyTransposed(b, h, op.getWeight()));
    Value i = b.sigmoid(gate(b, sums, size, 0));
    Value f = b.sigmoid(gate(b, sums, size, 1));
    Value g = b.tanh(gate(b, sums, size, 2));
    Value o = b.sigmoid(gate(b, sums, size, 3));
    c = b.add(b.mul(f, c), b.mul(i, g));
    h = b.mul(o, b.tanh(c));
    output[t] = h;
    cells[t] = c;
    if (b.isUsed(3))
      gates[t] = concatenateGates(b, {i, f, g, o});
  }
  auto stackIfUsed = [&](unsigned result, ArrayRef<Value> values) {
    return b.isUsed(result) ? stack(b, values) : Value();
  };
  return b.replaceWith({stackIfUsed(0, output), h, c, stackIfUsed(3, gates),
                        stackIfUsed(4, cells)});
}

static LogicalResult decomposeLstmBackward(TorchLtcLstmBackwardOp op,
                                           FormulaBuilder &b) {
  Value gradOutput = op.getGradOutput(), output = op.getOutput();
  int64_t size = b.sizes(op.getHx())[1];
  bool reverse = b.boolean(op.getReverse());
  Steps steps{b.sizes(output)[0], reverse};
  Value i = gate(b, op.getGates(), size, 0),
        f = gate(b, op.getGates(), size, 1);
  Value g = gate(b, op.getGates(), size, 2),
        o = gate(b, op.getGates(), size, 3);
  Value before = statesBefore(b, op.getCx(), op.getCells(), reverse);
  Value states = b.tanh(op.getCells());
  Value factors[] = {
      b.mul(g, sigmoidSlope(b, i)), b.mul(before, sigmoidSlope(b, f)),
      b.mul(i, tanhSlope(b, g)), b.mul(states, sigmoidSlope(b, o))};
  Value cellFactor = b.mul(o, tanhSlope(b, states));

  Value gradH = lastGradient(b, gradOutput, op.getGradHy(), op.getHx(),
                             steps[steps.count - 1]);
  Value gradC = b.isNone(op.getGradCy())
                    ? b.zeros(b.sizes(op.getCx()), b.dtype(op.getCx()))
                    : op.getGradCy();
  SmallVector<Value> grads(steps.count);
  for (int64_t n = steps.count - 1; n >= 0; --n) {
    int64_t t = steps[n];
    auto at = [&](Value all) { return b.select(all, 0, t); };
    gradC = b.add(gradC, b.mul(gradH, at(cellFactor)));
    grads[t] = concatenateGates(
        b, {b.mul(gradC, at(factors[0])), b.mul(gradC, at(factors[1])),
            b.mul(gradC, at(factors[2])), b.mul(gradH, at(factors[3]))});
    gradC = b.mul(gradC, at(f));
    gradH = b.mm(grads[t], op.getWeight());
    if (n > 0)
      gradH = addStep(b, gradH, gradOutput, steps[n - 1]);
  }
  Value all = stack(b, grads), gradWeight;
  if (b.isUsed(3))
    gradWeight = weightGradient(b, asMatrix(b, all),
                                statesBefore(b, op.getHx(), output, reverse));
  return b.replaceWith({all, gradH, gradC, gradWeight});
}

static LogicalResult decomposeGru(TorchLtcGruOp op, FormulaBuilder &b) {
  Value projections = op.getProjections(), h = op.getHx();
  int64_t size = b.sizes(h)[1];
  Steps steps{b.sizes(projections)[0], b.boolean(op.getReverse())};
  SmallVector<Value> output(steps.count), gates(steps.count);
  for (int64_t i = 0; i < steps.count; ++i) {
    int64_t t = steps[i];
    Value input = b.select(projections, 0, t);
    Value hidden = multiplyTransposed(b, h, op.getWeight());
    if (!b.isNone(op.getBias()))
      hidden = b.add(hidden, op.getBias());
    Value both = b.sigmoid(
        b.add(gate(b, input, size, 0, 2), gate(b, hidden, size, 0, 2)));
    Value r = gate(b, both, size, 0), z = gate(b, both, size, 1);
    Value m = gate(b, hidden, size, 2);
    Value n = b.tanh(b.add(gate(b, input, size, 2), b.mul(r, m)));
    h = b.add(n, b.mul(z, b.sub(h, n)));
    output[t] = h;
    if (b.isUsed(2))
      gates[t] = concatenateGates(b, {r, z, n, m});
  }
  return b.replaceWith({b.isUsed(0) ? stack(b, output) : Value(), h,
                        b.isUsed(2) ? stack(b, gates) : Value()});
}

static LogicalResult decomposeGruBackward(TorchLtcGruBackwardOp op,
                                          FormulaBuilder &b) {
  Value gradOutput = op.getGradOutput(), output = op.getOutput();
  int64_t size = b.sizes(op.getHx())[1];
  bool reverse = b.boolean(op.getReverse());
  Steps steps{b.sizes(output)[0], reverse};
  Value r = gate(b, op.getGates(), size, 0),
        z = gate(b, op.getGates(), size, 1);
  Value n = gate(b, op.getGates(), size, 2),
        m = gate(b, op.getGates(), size, 3);
  Value before = statesBefore(b, op.getHx(), output, reverse);
  Value ofN = b.mul(b.sub(1, z), tanhSlope(b, n));
  Value factors[] = {b.mul(b.mul(ofN, m), sigmoidSlope(b, r)),
                     b.mul(b.sub(before, n), sigmoidSlope(b, z)),
                     b.mul(ofN, r)};

  Value gradH = lastGradient(b, gradOutput, op.getGradHy(), op.getHx(),
                             steps[steps.count - 1]);
  SmallVector<Value> ofHidden(steps.count), ofInput(steps.count);
  for (int64_t i = steps.count - 1; i >= 0; --i) {
    int64_t t = steps[i];
    auto times = [&](Value all) { return b.mul(gradH, b.select(all, 0, t)); };
    Value gates = concatenateGates(b, {times(factors[0]), times(factors[1])});
    ofHidden[t] = concatenateGates(b, {gates, times(factors[2])});
    ofInput[t] = concatenateGates(b, {gates, times(ofN)});
    gradH = b.add(b.mm(ofHidden[t], op.getWeight()), times(z));
    if (i > 0)
      gradH = addStep(b, gradH, gradOutput, steps[i - 1]);
  }
  Value hidden = asMatrix(b, stack(b, ofHidden)), gradWeight, gradBias;
  if (b.isUsed(2))
    gradWeight = weightGradient(b, hidden, before);
  if (b.isUsed(3))
    gradBias = b.sum(hidden, {0}, /*keepDim=*/false);
  return b.replaceWith({stack(b, ofInput), gradH, gradWeight, gradBias});
}

static LogicalResult decomposeRnn(TorchLtcRnnOp op, FormulaBuilder &b) {
  Value projections = op.getProjections(), h = op.getHx();
  bool relu = b.boolean(op.getRelu());
  Steps steps{b.sizes(projections)[0], b.boolean(op.getReverse())};
  SmallVector<Value> output(steps.count);
  for (int64_t i = 0; i < steps.count; ++i) {
    int64_t t = steps[i];
    Value sum = b.add(b.select(projections, 0, t),
                      multiplyTransposed(b, h, op.getWeight()));
    h = relu ? b.clampMin(sum, 0) : b.tanh(sum);
    output[t] = h;
  }
  return b.replaceWith({b.isUsed(0) ? stack(b, output) : Value(), h});
}

static LogicalResult decomposeRnnBackward(TorchLtcRnnBackwardOp op,
                                          FormulaBuilder &b) {
  Value gradOutput = op.getGradOutput(), output = op.getOutput();
  bool relu = b.boolean(op.getRelu()), reverse = b.boolean(op.getReverse());
  Steps steps{b.sizes(output)[0], reverse};
  Value gradH = lastGradient(b, gradOutput, op.getGradHy(), op.getHx(),
                             steps[steps.count - 1]);
  SmallVector<Value> grads(steps.count);
  for (int64_t i = steps.count - 1; i >= 0; --i) {
    int64_t t = steps[i];
    Value state = b.select(output, 0, t);
    grads[t] = relu ? b.maskedFill(gradH, b.le(state, 0.0), 0)
                    : b.mul(gradH, tanhSlope(b, state));
    gradH = b.mm(grads[t], op.getWeight());
    if (i > 0)
      gradH = addStep(b, gradH, gradOutput, steps[i - 1]);
  }
  Value all = stack(b, grads), gradWeight;
  if (b.isUsed(2))
    gradWeight = weightGradient(b, asMatrix(b, all),
                                statesBefore(b, op.getHx(), output, reverse));
  return b.replaceWith({all, gradH, gradWeight});
}

void mlir::torch_ltc::populateRecurrenceDecompositionPatterns(
    RewritePatternSet &patterns, const DecompositionOptions &options) {
  DecompositionAdder adder(patterns, options);
  adder.add(decomposeLstm);
  adder.add(decomposeLstmBackward);
  adder.add(decomposeGru);
  adder.add(decomposeGruBackward);
  adder.add(decomposeRnn);
  adder.add(decomposeRnnBackward);
}
