//===- DecomposeElementwise.cpp - Elementwise ops with several results ----===//
//
// Scalar builders lower most elementwise ops with one result directly.
// Formulas: aten/src/ATen/native/Activation.cpp and cpu/Activation.cpp.
//
//===----------------------------------------------------------------------===//

#include "FormulaBuilder.h"

#include "torch_ltc/Dialect/Torch/TorchOps_elementwise.h"
#include "torch_ltc/Dialect/Torch/TorchOps_random.h"

using namespace mlir;
using namespace mlir::torch_ltc;
using namespace mlir::torch_ltc::torch;

// buffer = exp(-|x|); output = min(x, 0) - log1p(buffer)
static LogicalResult decomposeLogSigmoid(AtenLogSigmoidForwardOp op,
                                         FormulaBuilder &b) {
  Value x = b.compute(op.getSelf());
  Value buffer = b.exp(b.neg(b.abs(x)));
  Value output = b.sub(b.clampMax(x, 0.0), b.log1p(buffer));
  return b.replaceWith({output, buffer});
}

namespace {
// The two halves of glu's operand.
struct Halves {
  int64_t dim;
  Value first, second;
};
} // namespace

static Halves split(FormulaBuilder &b, Value self, Value dim) {
  Halves halves;
  halves.dim = b.dimension(dim, b.rank(self));
  Value x = b.compute(self);
  int64_t size = b.sizes(x)[halves.dim];
  halves.first = b.slice(x, halves.dim, 0, size / 2);
  halves.second = b.slice(x, halves.dim, size / 2, size);
  return halves;
}

// first * sigmoid(second)
static LogicalResult decomposeGlu(AtenGluOp op, FormulaBuilder &b) {
  Halves x = split(b, op.getSelf(), op.getDim());
  return b.replaceWith({b.mul(x.first, b.sigmoid(x.second))});
}

// With s = sigmoid(second), the gradient of the first half is s * grad, and
// that of the second half (1 - s) * s * grad * first.
static LogicalResult decomposeGluBackward(AtenGluBackwardOp op,
                                          FormulaBuilder &b) {
  Halves x = split(b, op.getSelf(), op.getDim());
  Value grad = b.compute(op.getGradOutput());
  Value s = b.sigmoid(x.second);
  Value gradFirst = b.mul(s, grad);
  Value gradSecond =
      b.mul(b.mul(b.mul(b.sub(Number(1.0), s), s), grad), x.first);
  return b.replaceWith(
      {b.concatenate({gradFirst, gradSecond}, x.dim, b.resultSizes())});
}

// The gradients of x and of the weight: grad and 0 if x > 0, otherwise
// weight * grad and x * grad.
static LogicalResult decomposePreluBackward(Aten_PreluKernelBackwardOp op,
                                            FormulaBuilder &b) {
  Value grad = b.compute(op.getGradOutput()), x = b.compute(op.getSelf());
  Value positive = b.gt(x, 0.0);
  Value gradSelf =
      b.where(positive, grad, b.mul(b.compute(op.getWeight()), grad));
  Value gradWeight = b.maskedFill(b.mul(x, grad), positive, 0.0);
  return b.replaceWith({gradSelf, gradWeight});
}

// grad * mask * scale
static LogicalResult decomposeDropoutBackward(AtenNativeDropoutBackwardOp op,
                                              FormulaBuilder &b) {
  Value grad = b.compute(op.getGradOutput(), b.resultDtype());
  Value mask = b.cast(op.getMask(), b.dtype(grad));
  return b.replaceWith({b.mul(b.mul(grad, mask), b.number(op.getScale()))});
}

// Converts `src` to self's dtype and expands it to self's sizes.
static LogicalResult decomposeCopy(AtenCopyOp op, FormulaBuilder &b) {
  Value src = b.cast(op.getSrc(), b.resultDtype());
  return b.replaceWith({b.expand(src, b.resultSizes())});
}

// The step of one parameter in torch.optim.Adam(W) without amsgrad, with the
// order of operations of _multi_tensor_adam (torch/optim/adam.py). The numbers
// that depend on the step count are arguments of the op.
static LogicalResult decomposeAdamUpdate(TorchLtcAdamUpdateOp op,
                                         FormulaBuilder &b) {
  Value self = op.getSelf(), grad = op.getGrad();
  Number decay = b.number(op.getDecay());
  if (!decay.is(1.0))
    self = b.mul(self, decay);
  Value expAvg = b.lerp(op.getExpAvg(), grad, b.number(op.getLerpWeight()));
  Value expAvgSq = b.mul(op.getExpAvgSq(), b.number(op.getBeta2()));
  expAvgSq = b.addcmul(expAvgSq, grad, grad, b.number(op.getValue()));
  Value root = b.div(b.sqrt(expAvgSq), b.number(op.getBias2Root()));
  Value denominator = b.add(root, b.number(op.getEps()));
  self =
      b.addcdiv(self, expAvg, denominator, b.number(op.getNegativeStepSize()));
  return b.replaceWith({self, expAvg, expAvgSq});
}

namespace {
// An LSTM cell's gates after their activations.
struct LstmGates {
  Value i, f, g, o;

  LstmGates(FormulaBuilder &b, Value gates) {
    int64_t size = b.sizes(gates)[1] / 4;
    auto quarter = [&](int64_t n) {
      return b.slice(gates, 1, n * size, (n + 1) * size);
    };
    i = b.sigmoid(quarter(0));
    f = b.sigmoid(quarter(1));
    g = b.tanh(quarter(2));
    o = b.sigmoid(quarter(3));
  }
};
} // namespace

// cy = f * cx + i * g, hy = o * tanh(cy)
static LogicalResult decomposeLstmGates(TorchLtcLstmGatesOp op,
                                        FormulaBuilder &b) {
  Value gates = b.add(op.getInputGates(), op.getHiddenGates());
  LstmGates a(b, gates);
  Value cy = b.add(b.mul(a.f, op.getCx()), b.mul(a.i, a.g));
  return b.replaceWith({b.mul(a.o, b.tanh(cy)), cy, gates});
}

// Recomputes the activations of the gates, which CSE merges with those of the
// forward pass.
static LogicalResult decomposeLstmGatesBackward(TorchLtcLstmGatesBackwardOp op,
                                                FormulaBuilder &b) {
  Value cy = op.getCy();
  LstmGates a(b, op.getGates());
  auto slope = [&](Value sigmoid) {
    return b.mul(b.sub(Number(1.0), sigmoid), sigmoid);
  };
  auto tanhSlope = [&](Value tanh) {
    return b.sub(Number(1.0), b.square(tanh));
  };
  Value t = b.tanh(cy), o, state;
  if (!b.isNone(op.getGradHy())) {
    o = b.mul(b.mul(op.getGradHy(), t), slope(a.o));
    state = b.mul(b.mul(op.getGradHy(), a.o), tanhSlope(t));
  } else {
    o = b.zeros(b.sizes(cy), b.dtype(cy));
  }
  if (!b.isNone(op.getGradCy()))
    state = state ? b.add(state, op.getGradCy()) : op.getGradCy();
  if (!state)
    state = b.zeros(b.sizes(cy), b.dtype(cy));
  Value i = b.mul(b.mul(state, a.g), slope(a.i));
  Value f = b.mul(b.mul(state, op.getCx()), slope(a.f));
  Value g = b.mul(b.mul(state, a.i), tanhSlope(a.g));
  return b.replaceWith(
      {b.concatenate({i, f, g, o}, 1, b.resultSizes()), b.mul(state, a.f)});
}

void mlir::torch_ltc::populateElementwiseDecompositionPatterns(
    RewritePatternSet &patterns, const DecompositionOptions &options) {
  DecompositionAdder adder(patterns, options);
  adder.add(decomposeLogSigmoid);
  adder.add(decomposeGlu);
  adder.add(decomposeGluBackward);
  adder.add(decomposePreluBackward);
  adder.add(decomposeDropoutBackward);
  adder.add(decomposeCopy);
  adder.add(decomposeAdamUpdate);
  adder.add(decomposeLstmGates);
  adder.add(decomposeLstmGatesBackward);
}
