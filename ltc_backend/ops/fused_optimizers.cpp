//===- fused_optimizers.cpp - torch.optim's steps with fused=True ---------===//
//
// `_fused_adam_`, `_fused_adamw_`, `_fused_sgd_` and `_fused_adagrad_` update
// lists of parameters in place. Each parameter's update is traced as the
// formula of eager's CPU kernel; numbers and step counts are arguments of the
// program. 16-bit floats are computed in float32 and rounded where eager stores
// them. One behavior of eager's SGD for 16-bit floats isn't reproduced: the
// kernel doesn't store the results of its vectorized loop (torch 2.13).
//
//===----------------------------------------------------------------------===//

#include "ops/fused_optimizers.h"

#include "graph/live_tensors.h"
#include "tracing/boxed_kernels.h"
#include "tracing/trace.h"
#include "tracing/wrapped_value.h"

#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <cmath>

using namespace torch_ltc;
using at::Tensor;
using c10::DispatchKey;
using c10::IValue;
using c10::OperatorHandle;
using torch::jit::Stack;

namespace {

/// A number that is known when the call is traced, or a lazy tensor of rank 0.
class Number {
public:
  Number(double known) : known(known) {}
  /// Tensors on the CPU have known values.
  explicit Number(const Tensor &tensor)
      : known(tensor.is_cpu() ? tensor.item<double>() : 0),
        tensor(tensor.is_cpu() ? Tensor() : tensor.to(at::kDouble)) {}

  bool isKnown() const { return !tensor.defined(); }
  double get() const { return known; }

  template <typename OfDouble, typename OfTensor>
  Number map(OfDouble ofDouble, OfTensor ofTensor) const {
    if (isKnown())
      return Number(ofDouble(known));
    return Number(ofTensor(tensor));
  }
  Number operator*(const Number &other) const {
    if (other.isKnown())
      return map([&](double x) { return x * other.known; },
                 [&](const Tensor &x) { return at::mul(x, other.known); });
    if (isKnown())
      return other * *this;
    return Number(at::mul(tensor, other.tensor));
  }
  Number reciprocal() const {
    return map([](double x) { return 1 / x; },
               [](const Tensor &x) { return at::reciprocal(x); });
  }

  /// The product of the number and `x`, in the dtype of `x`, even if `x` has
  /// rank 0.
  Tensor scale(const Tensor &x) const {
    return isKnown() ? at::mul(x, known)
                     : at::mul(x, tensor.to(x.scalar_type()));
  }

private:
  double known = 0;
  Tensor tensor;
};

/// Gives access to the arguments of one call by their names in the schema.
class Call {
public:
  Call(const c10::FunctionSchema &schema, c10::ArrayRef<IValue> arguments)
      : schema(schema), arguments(arguments) {}

  double number(const char *name) const { return at(name).toDouble(); }
  bool flag(const char *name) const { return at(name).toBool(); }
  /// Element `i` of a list. An undefined tensor if the list is empty: with its
  /// options, the optimizer doesn't need these tensors.
  Tensor element(const char *name, size_t i) const {
    const auto &list = at(name).toListRef();
    return list.empty() ? Tensor() : list[i].toTensor();
  }
  /// An optional tensor; undefined if it is None.
  Tensor tensor(const char *name) const {
    const IValue &value = at(name);
    return value.isNone() ? Tensor() : value.toTensor();
  }
  Number rate() const {
    const IValue &rate = at("lr");
    return rate.isTensor() ? Number(insideOf(rate.toTensor()))
                           : Number(rate.toDouble());
  }
  size_t size() const { return arguments[0].toListRef().size(); }

  static Tensor insideOf(const Tensor &tensor) {
    return tensor.defined() && tensor.device().is_lazy() ? valueOf(tensor)
                                                         : tensor;
  }

  /// Whether no gradient is recorded, and all tensors are plain tensors of this
  /// device or hold a single number.
  bool isPlain() const {
    for (size_t a = 0; a < arguments.size(); ++a) {
      if (arguments[a].isTensor() && !isPlainNumber(arguments[a].toTensor()))
        return false;
      if (!arguments[a].isTensorList())
        continue;
      const auto &list = arguments[a].toListRef();
      if (list.size() != size() && !list.empty())
        return false;
      bool isSteps = schema.arguments()[a].name() == "state_steps";
      for (size_t i = 0; i < list.size(); ++i)
        if (isSteps ? !isPlainNumber(list[i].toTensor())
                    : !isPlainState(list[i].toTensor(), i))
          return false;
    }
    return true;
  }

private:
  const IValue &at(const char *name) const {
    for (size_t i = 0; i < arguments.size(); ++i)
      if (schema.arguments()[i].name() == name)
        return arguments[i];
    TORCH_INTERNAL_ASSERT(false, schema.name(), " has no argument ", name);
  }

  static bool isPlainNumber(const Tensor &tensor) {
    return tensor.numel() == 1 && tensor.dim() == 0 &&
           (tensor.is_cpu() || isPlainWrapper(tensor));
  }
  bool isPlainState(const Tensor &tensor, size_t i) const {
    const Tensor &parameter = arguments[0].toListRef()[i].toTensor();
    return isPlainWrapper(tensor) && tensor.is_floating_point() &&
           !(at::GradMode::is_enabled() && tensor.requires_grad()) &&
           tensor.scalar_type() == parameter.scalar_type() &&
           tensor.sizes() == parameter.sizes();
  }

  const c10::FunctionSchema &schema;
  c10::ArrayRef<IValue> arguments;
};

/// A tensor that the optimizer reads or writes. `value` has the dtype of the
/// computation.
class State {
public:
  explicit State(const Tensor &wrapper = {}) : wrapper(wrapper) {
    if (!wrapper.defined())
      return;
    old = valueOf(wrapper);
    bool isShort = wrapper.element_size() == 2;
    value = isShort ? old.to(at::kFloat) : old;
  }

  /// Makes `result` the tensor's value. `keepsOld`: a lazy bool, whether the
  /// old value stays; undefined for false.
  void store(const Tensor &result, const Tensor &keepsOld) const {
    Tensor stored = result.to(wrapper.scalar_type());
    if (keepsOld.defined())
      stored = at::where(keepsOld, old, stored);
    markInPlace(stored);
    replaceValue(wrapper, stored);
  }

  Tensor value;

private:
  Tensor wrapper, old;
};

/// A gradient after the operations that are common to all optimizers: unscaled
/// and, with `maximize`, negated.
class Gradient {
public:
  Gradient(const Call &call, size_t i)
      : scale(Call::insideOf(call.tensor("grad_scale"))),
        foundInf(Call::insideOf(call.tensor("found_inf"))) {
    State stored(call.element("grads", i));
    value = stored.value;
    if (foundInf.defined())
      keepsOld = at::eq(foundInf, 1);
    if (scale.defined()) {
      value = at::div(value, scale.to(value.scalar_type()));
      stored.store(value, keepsOld);
    }
    if (call.flag("maximize"))
      value = at::neg(value);
  }

  Tensor value, keepsOld;

private:
  Tensor scale, foundInf;
};

void traceAdam(const Call &call, size_t i, bool isDecoupled) {
  double beta1 = call.number("beta1"), beta2 = call.number("beta2");
  double weightDecay = call.number("weight_decay");
  Number rate = call.rate(),
         step(Call::insideOf(call.element("state_steps", i)));
  auto correction = [&](double beta) {
    return step.map([&](double n) { return 1 - std::pow(beta, n); },
                    [&](const Tensor &n) {
                      return at::rsub(at::pow(at::Scalar(beta), n), 1);
                    });
  };
  Number root = correction(beta2).map([](double x) { return std::sqrt(x); },
                                      [](const Tensor &x) { return x.sqrt(); });

  Gradient gradient(call, i);
  State self(call.element("self", i)), average(call.element("exp_avgs", i)),
      square(call.element("exp_avg_sqs", i)), largest;
  if (call.flag("amsgrad"))
    largest = State(call.element("max_exp_avg_sqs", i));
  Tensor grad = gradient.value, value = self.value;
  if (weightDecay != 0 && isDecoupled)
    value = (rate * Number(-weightDecay))
                .map([](double x) { return 1 + x; },
                     [](const Tensor &x) { return at::add(x, 1); })
                .scale(value);
  else if (weightDecay != 0)
    grad = at::add(grad, value, weightDecay);
  Tensor newAverage = at::lerp(average.value, grad, 1 - beta1);
  Tensor newSquare =
      at::addcmul(at::mul(square.value, beta2), grad, grad, 1 - beta2);
  Tensor under = newSquare;
  if (largest.value.defined())
    under = at::maximum(largest.value, newSquare);
  Tensor denominator =
      at::add(root.reciprocal().scale(under.sqrt()), call.number("eps"));
  Number negativeSize = rate * correction(beta1).reciprocal() * Number(-1.0);
  Tensor update = at::div(newAverage, denominator);
  self.store(at::add(value, negativeSize.scale(update)), gradient.keepsOld);
  average.store(newAverage, gradient.keepsOld);
  square.store(newSquare, gradient.keepsOld);
  if (largest.value.defined())
    largest.store(under, gradient.keepsOld);
}

void traceSgd(const Call &call, size_t i) {
  double momentum = call.number("momentum");
  double weightDecay = call.number("weight_decay");
  Gradient gradient(call, i);
  State self(call.element("self", i)),
      buffer(call.element("momentum_buffer_list", i));
  Tensor grad = gradient.value;
  if (weightDecay != 0)
    grad = at::add(grad, self.value, weightDecay);
  if (momentum != 0) {
    Tensor moved = grad;
    if (!call.flag("is_first_step"))
      moved = at::add(at::mul(buffer.value, momentum), grad,
                      1 - call.number("dampening"));
    buffer.store(moved, gradient.keepsOld);
    grad = call.flag("nesterov") ? at::add(grad, moved, momentum) : moved;
  }
  Number negativeRate = call.rate() * Number(-1.0);
  self.store(at::add(self.value, negativeRate.scale(grad)), gradient.keepsOld);
}

void traceAdagrad(const Call &call, size_t i) {
  double decay = call.number("lr_decay");
  double weightDecay = call.number("weight_decay");
  Number slowed(1.0);
  if (decay != 0)
    slowed = Number(Call::insideOf(call.element("state_steps", i)))
                 .map([&](double n) { return 1 + (n - 1) * decay; },
                      [&](const Tensor &n) {
                        return at::add(at::mul(at::sub(n, 1), decay), 1);
                      });
  Number negativeRate = call.rate() * slowed.reciprocal() * Number(-1.0);
  Gradient gradient(call, i);
  State self(call.element("self", i)), sum(call.element("state_sums", i));
  Tensor grad = gradient.value;
  if (weightDecay != 0)
    grad = at::add(grad, self.value, weightDecay);
  Tensor newSum = at::addcmul(sum.value, grad, grad);
  Tensor update = at::div(grad, at::add(newSum.sqrt(), call.number("eps")));
  self.store(at::add(self.value, negativeRate.scale(update)),
             gradient.keepsOld);
  sum.store(newSum, gradient.keepsOld);
}

class FusedKernel final : public KernelAround {
public:
  using Tracer = void (*)(const Call &, size_t);
  FusedKernel(Tracer tracer, c10::SafeKernelFunction previous)
      : KernelAround(std::move(previous)), tracer(tracer) {}

  void operator()(const OperatorHandle &op, c10::DispatchKeySet keys,
                  Stack *stack) {
    size_t numArguments = op.schema().arguments().size();
    Stack arguments(stack->end() - int64_t(numArguments), stack->end());
    Call call(op.schema(), arguments);
    if (!call.isPlain())
      return previous.callBoxed(op, keys, stack);
    torch::jit::drop(*stack, numArguments);
    BelowFunctionalization below;
    for (size_t i = 0; i < call.size(); ++i)
      tracer(call, i);
  }

private:
  Tracer tracer;
};

} // namespace

void torch_ltc::registerFusedOptimizers() {
  SilentRegistration silence;
  auto around = [](const char *name, FusedKernel::Tracer tracer) {
    // At Functionalize for calls in inference mode and inside a
    // __torch_dispatch__ (DTensor): torch's kernel (2.13) fails if one of the
    // lists is empty.
    for (const char *overload : {"", "tensor_lr"})
      registerAroundInAnyMode<FusedKernel>(findOp({name, overload}), tracer);
  };
  around("aten::_fused_adam_",
         [](const Call &call, size_t i) { traceAdam(call, i, false); });
  around("aten::_fused_adamw_",
         [](const Call &call, size_t i) { traceAdam(call, i, true); });
  around("aten::_fused_sgd_", traceSgd);
  around("aten::_fused_adagrad_", traceAdagrad);
}
