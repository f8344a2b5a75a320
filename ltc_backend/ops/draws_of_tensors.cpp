//===- draws_of_tensors.cpp - Distributions given by tensors --------------===//
//
// Eager draws numbers of a standard distribution, which doesn't depend on the
// tensors, and computes the result from the numbers and the tensors. Here the
// numbers are drawn when the op is traced (random.cpp), and the computation is
// traced.
//
//===----------------------------------------------------------------------===//

#include "compilation/external_backend.h"
#include "fallback/eager_fallback.h"
#include "graph/inference_tensors.h"
#include "graph/live_tensors.h"
#include "memory/lazy_device.h"
#include "ops/draws.h"
#include "shape/strides.h"
#include "tracing/boxed_kernels.h"
#include "tracing/trace.h"

#include <ATen/ExpandUtils.h>
#include <ATen/Functions.h>

#include <limits>
#include <sstream>
#include <vector>

using namespace torch_ltc;
using at::Tensor;
using c10::IValue;
using c10::OperatorHandle;
using torch::jit::Stack;

namespace {

using ArgumentsRef = c10::ArrayRef<IValue>;
using OptionalGenerator = std::optional<at::Generator>;

/// Traces an op. Returns an undefined tensor if eager's kernel must run, which
/// accepts the arguments or raises its own error.
using DrawFormula = Tensor (*)(ArgumentsRef arguments);

template <DrawFormula formula>
void kernel(const OperatorHandle &op, Stack *stack) {
  static const std::string name = textOf(op.operator_name());
  if (isFallbackForced(name))
    return runFallback(op, *stack, "forced");
  size_t numArguments = op.schema().arguments().size();
  ArgumentsRef arguments = torch::jit::last(*stack, numArguments);
  for (const IValue &argument : arguments)
    if (argument.isDevice())
      checkLazyDevice(argument.toDevice());
  Tensor result = formula(arguments);
  if (!result.defined())
    return runFallback(op, *stack, "arguments of these sizes or dtypes");
  torch::jit::drop(*stack, numArguments);
  stack->emplace_back(std::move(result));
}

OptionalGenerator generatorOf(const IValue &value) {
  return value.toOptional<at::Generator>();
}

bool isTraced(const Tensor &tensor) {
  return tensor.device().is_lazy() && at::isFloatingType(tensor.scalar_type());
}

Tensor normals(at::IntArrayRef sizes, at::ScalarType dtype, double mean,
               double std, const OptionalGenerator &generator) {
  return drawn(
      [traced = sizes.vec(), dtype, mean, std,
       generator](at::OptionalIntArrayRef sizes) {
        return at::empty(sizes.value_or(traced), dtype)
            .normal_(mean, std, generator);
      },
      [&] {
        std::ostringstream text;
        text.precision(17);
        text << "normal(" << mean << ", " << std << ")";
        return text.str();
      });
}

/// `numbers` times `std`, in the dtype of `numbers`.
Tensor scaled(const Tensor &numbers, const Tensor &std) {
  Tensor result = traceOp(
      "aten::mul.Tensor",
      {numbers, checked(std, traceOp("aten::ge.Scalar", {std, IValue(0)}),
                        "normal expects all elements of std >= 0.0")});
  if (result.scalar_type() == numbers.scalar_type())
    return result;
  return traceOp("aten::_to_copy",
                 {result, IValue(int64_t(numbers.scalar_type()))});
}

/// Makes the result row-major, whatever the strides of the operands.
Tensor withRowMajorStrides(Tensor result) {
  if (!hasPackedStrides(result))
    setGeometry(result, packedStrides(result.sizes()));
  return result;
}

Tensor shifted(const Tensor &numbers, const IValue &mean) {
  const char *op = mean.isTensor() ? "aten::add.Tensor" : "aten::add.Scalar";
  Tensor result = traceOp(op, {numbers, mean});
  // Eager adds in place, so the dtype stays the same.
  if (result.scalar_type() != numbers.scalar_type())
    result = traceOp("aten::_to_copy",
                     {result, IValue(int64_t(numbers.scalar_type()))});
  return withRowMajorStrides(std::move(result));
}

/// Whether eager's kernel rejects the standard deviations.
bool isNoDeviation(const Tensor &std) {
  return isRejected(
      std, [](const Tensor &known) { return known.min().item<double>() >= 0; });
}

Tensor normalOfTensors(ArgumentsRef arguments) {
  const Tensor &mean = arguments[0].toTensor(), &std = arguments[1].toTensor();
  if (!isTraced(mean) || !isTraced(std) || isNoDeviation(std))
    return Tensor();
  auto sizes = at::infer_size_dimvector(mean.sizes(), std.sizes());
  Tensor numbers =
      normals(sizes, mean.scalar_type(), 0, 1, generatorOf(arguments[2]));
  return shifted(scaled(numbers, std), mean);
}

Tensor normalAround(ArgumentsRef arguments) {
  const Tensor &mean = arguments[0].toTensor();
  double std = arguments[1].toDouble();
  if (!isTraced(mean) || !(std >= 0))
    return Tensor();
  return shifted(normals(mean.sizes(), mean.scalar_type(), 0, std,
                         generatorOf(arguments[2])),
                 mean);
}

Tensor normalScaled(ArgumentsRef arguments) {
  const Tensor &std = arguments[1].toTensor();
  if (!isTraced(std) || isNoDeviation(std))
    return Tensor();
  Tensor numbers =
      normals(std.sizes(), std.scalar_type(), 0, 1, generatorOf(arguments[2]));
  return shifted(scaled(numbers, std), arguments[0]);
}

Tensor normalOfNumbers(ArgumentsRef arguments) {
  NewMemory newMemory;
  at::ScalarType dtype =
      at::dtype_or_default(arguments[4].toOptional<at::ScalarType>());
  return wrapIfOutside(normals(arguments[2].toDimVector(), dtype,
                               arguments[0].toDouble(), arguments[1].toDouble(),
                               generatorOf(arguments[3])));
}

/// Whether all weights are positive or zero, and finite, with positive sums.
bool areWeights(const Tensor &weights) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  return weights.min().item<double>() >= 0 &&
         weights.max().item<double>() < kInfinity &&
         weights.sum(-1).min().item<double>() > 0;
}

/// Whether the weights are traced and eager's kernel accepts the arguments.
bool isSampled(const Tensor &weights, int64_t numSamples, bool replacement) {
  constexpr int64_t kMaxCategories = int64_t(1) << 24;
  return isTraced(weights) && weights.dim() >= 1 && weights.dim() <= 2 &&
         weights.numel() > 0 && weights.size(-1) <= kMaxCategories &&
         numSamples > 0 && (replacement || numSamples <= weights.size(-1)) &&
         !isRejected(weights, areWeights);
}

/// Returns `samples` with checks that fail the step if the weights aren't
/// valid. `bySums` selects the messages of one of eager's two kernels.
Tensor checkedSamples(Tensor samples, const Tensor &weights, bool bySums) {
  Tensor isPositive = traceOp("aten::ge.Scalar", {weights, IValue(0)});
  Tensor isFinite =
      traceOp("aten::lt.Scalar",
              {weights, IValue(std::numeric_limits<double>::infinity())});
  if (bySums) {
    samples = checked(samples, isPositive,
                      "invalid multinomial distribution (encountering "
                      "probability entry < 0)");
    samples = checked(samples, isFinite,
                      "invalid multinomial distribution (encountering "
                      "probability entry = infinity or NaN)");
  } else {
    samples =
        checked(samples, traceOp("aten::logical_and", {isPositive, isFinite}),
                "probability tensor contains either `inf`, `nan` or "
                "element < 0");
  }
  Tensor sums = traceOp("aten::sum.dim_IntList",
                        {weights, IValue(std::vector<int64_t>{-1})});
  return checked(
      samples, traceOp("aten::gt.Scalar", {sums, IValue(0)}),
      "invalid multinomial distribution (sum of probabilities <= 0)");
}

/// Samples the positions of the largest quotients of weights and exponentially
/// distributed numbers.
Tensor samplesByOrder(const Tensor &weights, int64_t numSamples,
                      const OptionalGenerator &generator) {
  DrawnMemory memory{weights.sizes().vec(),
                     copyStrides(weights, at::MemoryFormat::Preserve),
                     at::TensorOptions().dtype(weights.scalar_type())};
  Tensor exponentials = drawn(
      [memory, generator](at::OptionalIntArrayRef sizes) {
        return memory.allocate(sizes).exponential_(1, generator);
      },
      [] { return std::string("exponential(1)"); });
  Tensor quotients = traceOp("aten::div.Tensor", {weights, exponentials});
  if (numSamples == 1)
    return traceOp("aten::argmax", {quotients, IValue(-1), IValue(true)});
  const OpRecord &topk = getOpRecord("aten::topk");
  return traceOp(topk, {quotients, IValue(numSamples), IValue(-1), IValue(true),
                        IValue(true)})[1];
}

/// Samples the positions of uniform doubles among the cumulative probabilities.
Tensor samplesBySums(const Tensor &weights, int64_t numSamples,
                     const OptionalGenerator &generator) {
  std::vector<int64_t> sizes = weights.sizes().vec();
  int64_t last = std::exchange(sizes.back(), numSamples) - 1;
  Tensor uniform = drawn(
      [traced = sizes, generator](at::OptionalIntArrayRef sizes) {
        return at::empty(sizes.value_or(traced), at::kDouble)
            .uniform_(0, 1, generator);
      },
      [] { return std::string("uniform(0, 1)"); });
  // Eager adds 16-bit weights in float32.
  bool isWide = c10::elementSize(weights.scalar_type()) > 2;
  IValue dtype = isWide ? IValue() : IValue(int64_t(at::kFloat));
  Tensor sums = traceOp("aten::cumsum", {weights, IValue(-1), dtype});
  Tensor whole =
      traceOp("aten::slice_copy.Tensor", {sums, IValue(-1), IValue(last)});
  sums = traceOp("aten::div.Tensor", {sums, whole});
  if (sums.scalar_type() != at::kDouble)
    sums = traceOp("aten::_to_copy", {sums, IValue(int64_t(at::kDouble))});
  Tensor positions = traceOp("aten::searchsorted.Tensor", {sums, uniform});
  return traceOp("aten::clamp", {positions, IValue(), IValue(last)});
}

Tensor multinomial(ArgumentsRef arguments) {
  const Tensor &weights = arguments[0].toTensor();
  int64_t numSamples = arguments[1].toInt();
  bool replacement = arguments[2].toBool();
  if (!isSampled(weights, numSamples, replacement))
    return Tensor();
  bool bySums = replacement && numSamples > 1;
  OptionalGenerator generator = generatorOf(arguments[3]);
  Tensor samples = bySums ? samplesBySums(weights, numSamples, generator)
                          : samplesByOrder(weights, numSamples, generator);
  return withRowMajorStrides(
      checkedSamples(std::move(samples), weights, bySums));
}

template <DrawFormula formula> torch::CppFunction boxed() {
  return torch::CppFunction::makeFromBoxedFunction<&kernel<formula>>();
}

} // namespace

void torch_ltc::registerDrawsOfTensors(torch::Library &library) {
  library.impl("multinomial", boxed<multinomial>());
  library.impl("normal.Tensor_Tensor", boxed<normalOfTensors>());
  library.impl("normal.Tensor_float", boxed<normalAround>());
  library.impl("normal.float_Tensor", boxed<normalScaled>());
  library.impl("normal.float_float", boxed<normalOfNumbers>());
}
