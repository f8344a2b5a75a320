//===- adam.cpp - A step of Adam over all parameters ----------------------===//
//
// torch's implementation calls eight `_foreach_` ops over all parameters, which
// become eight nodes for each parameter. In small models, these nodes take more
// than half of the time of tracing. Here, the update of a parameter is one
// node, which the compiler decomposes into the same formula.
//
//===----------------------------------------------------------------------===//

#include "ops/adam.h"

#include "ops/adam_kernel.h"

#include "graph/live_tensors.h"
#include "shape/strides.h"
#include "tracing/trace.h"
#include "tracing/wrapped_value.h"

#include <ATen/ops/empty_like.h>
#include <torch/library.h>

#include <algorithm>
#include <cmath>

using namespace torch_ltc;
using at::Tensor;
using c10::DispatchKey;
using c10::IValue;

namespace {

std::tuple<Tensor &, Tensor &, Tensor &>
adamUpdateOut(const Tensor &self, const Tensor &grad, const Tensor &expAvg,
              const Tensor &expAvgSq, const at::Scalar &lerpWeight,
              const at::Scalar &beta2, const at::Scalar &value,
              const at::Scalar &bias2Root, const at::Scalar &eps,
              const at::Scalar &negativeStepSize, const at::Scalar &decay,
              Tensor &newSelf, Tensor &newAvg, Tensor &newSq) {
  AdamNumbers numbers{lerpWeight.toDouble(), beta2.toDouble(),
                      value.toDouble(),      bias2Root.toDouble(),
                      eps.toDouble(),        negativeStepSize.toDouble(),
                      decay.toDouble()};
  updateWithAdam(self.contiguous(), grad.contiguous(), expAvg.contiguous(),
                 expAvgSq.contiguous(), numbers, newSelf, newAvg, newSq);
  return {newSelf, newAvg, newSq};
}

std::tuple<Tensor, Tensor, Tensor>
adamUpdate(const Tensor &self, const Tensor &grad, const Tensor &expAvg,
           const Tensor &expAvgSq, const at::Scalar &lerpWeight,
           const at::Scalar &beta2, const at::Scalar &value,
           const at::Scalar &bias2Root, const at::Scalar &eps,
           const at::Scalar &negativeStepSize, const at::Scalar &decay) {
  Tensor newSelf = at::empty_like(self), newAvg = at::empty_like(expAvg),
         newSq = at::empty_like(expAvgSq);
  adamUpdateOut(self, grad, expAvg, expAvgSq, lerpWeight, beta2, value,
                bias2Root, eps, negativeStepSize, decay, newSelf, newAvg,
                newSq);
  return {newSelf, newAvg, newSq};
}

TORCH_LIBRARY_FRAGMENT(torch_ltc, library) {
  library.def(
      "adam_update(Tensor self, Tensor grad, Tensor exp_avg, Tensor "
      "exp_avg_sq, *, Scalar lerp_weight, Scalar beta2, Scalar value, Scalar "
      "bias2_root, Scalar eps, Scalar negative_step_size, Scalar decay=1) -> "
      "(Tensor, Tensor, Tensor)");
  library.impl("adam_update",
               torch::dispatch(DispatchKey::CompositeExplicitAutograd,
                               TORCH_FN(adamUpdate)));
  library.def(
      "adam_update.out(Tensor self, Tensor grad, Tensor exp_avg, Tensor "
      "exp_avg_sq, *, Scalar lerp_weight, Scalar beta2, Scalar value, Scalar "
      "bias2_root, Scalar eps, Scalar negative_step_size, Scalar decay=1, "
      "Tensor(a!) out0, Tensor(b!) out1, Tensor(c!) out2) -> (Tensor(a!), "
      "Tensor(b!), Tensor(c!))");
  library.impl("adam_update.out",
               torch::dispatch(DispatchKey::CPU, TORCH_FN(adamUpdateOut)));
}

bool isCpuCount(const Tensor &step) {
  return step.defined() && step.device().is_cpu() && step.numel() == 1 &&
         step.scalar_type() == at::ScalarType::Float && !step.is_inference() &&
         step.layout() == at::Layout::Strided;
}

bool isPlainLike(const Tensor &tensor, const Tensor &parameter) {
  return isPlainWrapper(tensor) && hasPackedStrides(tensor) &&
         tensor.scalar_type() == parameter.scalar_type() &&
         tensor.sizes() == parameter.sizes();
}

/// Whether adam_update supports the entry. It doesn't support 16-bit floats,
/// because each of torch's own ops rounds its result.
bool isPlainEntry(const AdamEntry &entry) {
  at::ScalarType dtype = entry.parameter.scalar_type();
  if ((dtype != at::ScalarType::Float && dtype != at::ScalarType::Double) ||
      !isCpuCount(entry.step))
    return false;
  for (const Tensor *tensor :
       {&entry.parameter, &entry.gradient, &entry.expAvg, &entry.expAvgSq})
    if (!isPlainLike(*tensor, entry.parameter))
      return false;
  return true;
}

/// Increments the step count and returns the number arguments of adam_update,
/// computed as torch's implementation in Python does.
c10::SmallVector<IValue, 11> numberArgumentsOf(const Tensor &step,
                                               const AdamOptions &options) {
  double count = (*step.mutable_data_ptr<float>() += 1);
  step.unsafeGetTensorImpl()->bump_version();
  double bias1 = 1 - std::pow(options.beta1, count);
  double bias2 = 1 - std::pow(options.beta2, count);
  double decay = options.decoupled && options.weightDecay != 0
                     ? 1 - options.learningRate * options.weightDecay
                     : 1;
  return {1 - options.beta1,
          options.beta2,
          1 - options.beta2,
          std::pow(bias2, 0.5),
          options.eps,
          options.learningRate / bias1 * -1,
          decay};
}

void traceEntry(const AdamEntry &entry, const AdamOptions &options) {
  static const OpRecord &record = getOpRecord("torch_ltc::adam_update");
  Tensor parameter = valueOf(entry.parameter);
  Tensor gradient = valueOf(entry.gradient);
  if (options.weightDecay != 0 && !options.decoupled)
    gradient =
        traceOp("aten::add.Tensor", {gradient, parameter, options.weightDecay});
  c10::SmallVector<IValue, 11> arguments{
      parameter, gradient, valueOf(entry.expAvg), valueOf(entry.expAvgSq)};
  arguments.append(numberArgumentsOf(entry.step, options));
  std::vector<Tensor> results = traceOp(record, arguments);
  markInPlace(results[0]);
  replaceValue(entry.parameter, results[0]);
  replaceValue(entry.expAvg, results[1]);
  replaceValue(entry.expAvgSq, results[2]);
}

} // namespace

bool torch_ltc::traceAdamStep(c10::ArrayRef<AdamGroup> groups) {
  TensorAccess access;
  for (const AdamGroup &group : groups)
    if (!std::all_of(group.entries.begin(), group.entries.end(), isPlainEntry))
      return false;
  BelowFunctionalization below;
  for (const AdamGroup &group : groups)
    for (const AdamEntry &entry : group.entries)
      traceEntry(entry, group.options);
  return true;
}
