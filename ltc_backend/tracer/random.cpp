//===- random.cpp - Random numbers, drawn when they are traced ------------===//
//
// The numbers come from torch's own CPU kernels and generator and enter the
// program as parameters: they equal eager's, cause no recompilation, and obey
// torch.manual_seed.
//
//===----------------------------------------------------------------------===//

#include "capture/recording.h"
#include "executor/live_tensors.h"
#include "tracer/registration.h"
#include "tracer/trace.h"

#include <ATen/Functions.h>

using namespace torch_ltc;
using c10::IValue;
using c10::OperatorHandle;
using torch::jit::Stack;

namespace {

/// Draws numbers and makes them data of device lazy; an open recording keeps
/// `draw`, which returns a new CPU tensor at each call.
HostDataPtr drawAndNote(Draw draw) {
  HostDataPtr drawn = HostData::takeOver(draw());
  if (Recording *recording = Recording::current())
    recording->noteDraw(drawn, std::move(draw));
  return drawn;
}

/// A kernel for ops that read nothing but the sizes and dtype of their tensor.
class DrawKernel final : public c10::OperatorKernel {
public:
  explicit DrawKernel(const OpRecord &record) : record(record) {}

  void operator()(const OperatorHandle &op, c10::DispatchKeySet, Stack *stack) {
    size_t numArguments = record.arguments.size();
    size_t begin = stack->size() - numArguments;
    for (size_t i = 0; i < numArguments; ++i) {
      IValue &value = (*stack)[begin + i];
      if (value.isTensor() && value.toTensor().device().is_lazy())
        value = standIn(value.toTensor());
      else if (record.arguments[i].name == "device")
        value = c10::Device(c10::kCPU);
    }
    Stack arguments(stack->begin() + int64_t(begin), stack->end());
    stack->resize(begin);
    at::Tensor result =
        makeTensor(drawAndNote([op, arguments = std::move(arguments)] {
          Stack values = arguments;
          op.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::CPU),
                             &values);
          return std::move(values.back()).toTensor();
        }));
    stack->emplace_back(record.hasTensorArgument ? result
                                                 : wrapIfOutside(result));
  }

private:
  static at::Tensor standIn(const at::Tensor &tensor) {
    return at::empty(tensor.sizes(),
                     at::TensorOptions().dtype(tensor.scalar_type()));
  }

  const OpRecord &record;
};

std::tuple<at::Tensor, at::Tensor>
nativeDropout(const at::Tensor &input, double p, std::optional<bool> train) {
  auto maskOptions = at::TensorOptions().dtype(at::kBool);
  if (train.has_value() && !*train)
    return {
        traceOp("aten::clone", {input}),
        makeTensor(HostData::takeOver(at::ones(input.sizes(), maskOptions)))};
  at::Tensor mask =
      makeTensor(drawAndNote([sizes = input.sizes().vec(), maskOptions, p] {
        return at::empty(sizes, maskOptions).bernoulli_(1 - p);
      }));
  double scale = p == 1 ? 0 : 1 / (1 - p);
  // The backward op is the forward computation.
  at::Tensor output =
      traceOp("aten::native_dropout_backward", {input, mask, IValue(scale)});
  return {output, mask};
}

/// Eager draws one uniform number for each probability, a double for doubles.
at::Tensor bernoulli(const at::Tensor &probabilities,
                     std::optional<at::Generator> generator) {
  at::ScalarType dtype = probabilities.scalar_type();
  TORCH_CHECK(c10::isFloatingType(dtype),
              "Expected tensor for argument self to have a floating dtype; but "
              "got ",
              dtype);
  auto options = at::TensorOptions().dtype(dtype == at::kDouble ? at::kDouble
                                                                : at::kFloat);
  at::Tensor uniform = makeTensor(
      drawAndNote([sizes = probabilities.sizes().vec(), options, generator] {
        return at::empty(sizes, options).uniform_(0, 1, generator);
      }));
  at::Tensor below = traceOp("aten::lt.Tensor", {uniform, probabilities});
  return traceOp("aten::_to_copy", {below, IValue(int64_t(dtype))});
}

} // namespace

std::vector<std::string>
torch_ltc::registerRandomKernels(torch::Library &library) {
  std::vector<std::string> names = {"aten::native_dropout", "aten::bernoulli"};
  library.impl("native_dropout", TORCH_FN(nativeDropout));
  library.impl("bernoulli", TORCH_FN(bernoulli));
  for (const OpRecord &record : opRecords()) {
    bool taken = record.name == names[0] || record.name == names[1];
    if (record.traceKind != TraceKind::randomTrace || taken ||
        record.handle->schema().is_mutable())
      continue;
    library.impl(record.name.c_str(),
                 torch::CppFunction::makeFromBoxedFunctor(
                     std::make_unique<DrawKernel>(record)));
    names.push_back(record.name);
  }
  return names;
}
