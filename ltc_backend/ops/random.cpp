//===- random.cpp - Random numbers, drawn at trace time -------------------===//
//
// The numbers come from torch's own CPU kernels and generator and enter the
// program as parameters: they equal eager's, cause no recompilation, and depend
// on torch.manual_seed.
//
//===----------------------------------------------------------------------===//

#include "eager_semantics/in_place.h"
#include "graph/inference_tensors.h"
#include "graph/live_tensors.h"
#include "memory/lazy_device.h"
#include "ops/bernoulli_draw.h"
#include "ops/draws.h"
#include "ops/registration.h"
#include "shape/strides.h"
#include "tracing/trace.h"

#include <ATen/Functions.h>

#include <algorithm>
#include <sstream>

using namespace torch_ltc;
using c10::IValue;
using c10::OperatorHandle;
using torch::jit::Stack;

at::Tensor torch_ltc::drawn(Draw draw,
                            c10::function_ref<std::string()> distribution) {
  at::Tensor numbers = draw(std::nullopt);
  HostData::noteRead(); // a formula that draws isn't remembered
  std::optional<Strides> strides;
  if (!hasPackedStrides(numbers))
    strides = Strides(numbers.strides());
  HostDataPtr data = HostData::takeOver(std::move(numbers));
  if (Recording *recording = Recording::current())
    recording->noteDraw(data, std::move(draw), distribution());
  at::Tensor result = makeTensor(std::move(data));
  if (strides)
    setGeometry(result, *strides);
  return result;
}

at::Tensor DrawnMemory::allocate(at::OptionalIntArrayRef other) const {
  if (!other)
    return at::empty_strided(sizes, strides, options);
  std::vector<int64_t> resized = at::infer_dense_strides(*other, strides);
  const bool hasGaps =
      !strides.empty() && *std::ranges::min_element(strides) > 1;
  if (hasGaps)
    for (int64_t &stride : resized)
      stride *= 2;
  return at::empty_strided(*other, resized, options);
}

at::Tensor torch_ltc::checked(const at::Tensor &value,
                              const at::Tensor &isValid, const char *message) {
  at::Tensor areAllValid =
      isValid.dim() ? traceOp("aten::all", {isValid}) : isValid;
  bool isInteger = value.scalar_type() == at::kLong;
  // PyTorch's kernels raise the error in a second run of the program, which
  // isn't possible once a parameter has been overwritten. So the check must run
  // before `value` is read, whose memory a result may reuse.
  at::Tensor token = isInteger
                         ? value
                         : traceOp("aten::zeros", {IValue(at::IntArrayRef()),
                                                   IValue(int64_t(at::kLong))});
  token = traceOp("aten::_functional_assert_async.msg",
                  {areAllValid, IValue(message), token});
  return isInteger ? token : traceOp("aten::add.Tensor", {value, token});
}

/// Returns the data of `values`, or the data that it only views: a tensor from
/// Python numbers is a view until the step ends. Null if it must be computed.
static HostDataPtr knownData(const at::Tensor &values) {
  TensorDataPtr tensor = tensorDataOf(values);
  if (!tensor)
    return nullptr;
  if (HostDataPtr data = tensor->data())
    return data;
  static const OpRecord &view = getOpRecord("aten::view_copy");
  torch::lazy::NodePtr node = tensor->value().node;
  const GraphNode *source = asGraphNode(node.get());
  while (source && !source->isData()) {
    const auto *op = static_cast<const OpNode *>(source);
    if (&op->record() != &view)
      return nullptr;
    source = asGraphNode(op->operandNode(0).get());
  }
  return source ? static_cast<const DataNode *>(source)->data() : nullptr;
}

bool torch_ltc::isRejected(
    const at::Tensor &values,
    c10::function_ref<bool(const at::Tensor &)> isValid) {
  constexpr int64_t kFewElements = 4096;
  if (values.numel() == 0 || values.numel() > kFewElements)
    return false;
  HostDataPtr data = knownData(values);
  if (!data || !data->isReady())
    return false;
  return !isValid(data->sharedTensor().reshape(values.sizes()));
}

namespace {

std::string bernoulliText(double p) {
  std::ostringstream text;
  text.precision(17);
  text << "bernoulli(" << p << ")";
  return text.str();
}

/// Describes a distribution with its number arguments: "randint(0, 6)" for
/// aten::randint.low.
std::string distributionText(const OpRecord &record, const Stack &arguments) {
  std::string name = record.name.substr(record.name.find("::") + 2);
  name = name.substr(0, name.find_first_of("._"));
  std::ostringstream text;
  text.precision(17);
  text << name << "(";
  const char *separator = "";
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (record.arguments[i].name == "dtype" ||
        record.arguments[i].name == "layout" ||
        record.arguments[i].name == "memory_format" ||
        !(arguments[i].isDouble() || arguments[i].isInt()))
      continue;
    text << separator;
    if (arguments[i].isInt())
      text << arguments[i].toInt();
    else
      text << arguments[i].toDouble();
    separator = ", ";
  }
  text << ")";
  return text.str();
}

/// Returns the memory of numbers that are drawn in the order of `self`, without
/// gaps.
DrawnMemory denseMemoryLike(const at::Tensor &self, at::ScalarType dtype) {
  return {self.sizes().vec(), copyStrides(self, at::MemoryFormat::Preserve),
          at::TensorOptions().dtype(dtype)};
}

/// Returns the memory into which the numbers for `self` are drawn. Numbers are
/// drawn in the order of the memory, and eager's kernels draw different numbers
/// into a tensor with gaps between its elements than into a contiguous one.
DrawnMemory memoryLike(const at::Tensor &self, at::ScalarType dtype) {
  DrawnMemory memory = denseMemoryLike(self, dtype);
  if (!self.is_contiguous() && memory.strides == packedStrides(self.sizes()))
    for (int64_t &stride : memory.strides)
      stride *= 2;
  return memory;
}

/// Returns `numbers`, or a copy without gaps if there are gaps between the
/// elements.
at::Tensor withoutGaps(const at::Tensor &numbers) {
  return numbers.is_non_overlapping_and_dense()
             ? numbers
             : numbers.clone(at::MemoryFormat::Preserve);
}

/// Returns the op that draws into its first tensor and whose functional form is
/// `record`; none for constructors and ops such as `rand_like`.
std::optional<OperatorHandle> inPlaceOp(const OpRecord &record) {
  if (!record.hasTensorArgument || record.updates.empty())
    return std::nullopt;
  c10::OperatorName name = record.handle->operator_name();
  name.name = name.name == "aten::normal_functional" ? "aten::normal_"
                                                     : name.name + "_";
  return c10::Dispatcher::singleton().findSchema(name);
}

/// A kernel for ops that read only the sizes, strides and dtype of their
/// tensor.
class DrawKernel final : public c10::OperatorKernel {
public:
  explicit DrawKernel(const OpRecord &record)
      : record(record), inPlace(inPlaceOp(record)) {}

  void operator()(const OperatorHandle &op, c10::DispatchKeySet, Stack *stack) {
    size_t numArguments = record.arguments.size();
    size_t begin = stack->size() - numArguments;
    for (size_t i = 0; i < numArguments; ++i) {
      IValue &value = (*stack)[begin + i];
      if (value.isDevice())
        checkLazyDevice(value.toDevice());
      if (value.isTensor() && value.toTensor().device().is_lazy())
        value = standIn(value.toTensor());
      else if (record.arguments[i].name == "device")
        value = c10::Device(c10::kCPU);
    }
    Stack arguments(stack->begin() + int64_t(begin), stack->end());
    stack->resize(begin);
    NewMemory newMemory(record);
    at::Tensor result = drawn(
        [drawing = inPlace.value_or(op), arguments,
         sized = sizedArgument(arguments)](at::OptionalIntArrayRef sizes) {
          Stack values = arguments;
          resize(values[sized], sizes);
          drawing.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::CPU),
                                  &values);
          return withoutGaps(std::move(values.back()).toTensor());
        },
        [&] { return distributionText(record, arguments); });
    stack->emplace_back(record.hasTensorArgument ? result
                                                 : wrapIfOutside(result));
  }

private:
  at::Tensor standIn(const at::Tensor &tensor) const {
    at::ScalarType dtype = tensor.scalar_type();
    return (inPlace ? memoryLike(tensor, dtype)
                    : denseMemoryLike(tensor, dtype))
        .allocate(std::nullopt);
  }

  /// The position of the argument that determines the sizes of the draw: a
  /// tensor, a list of sizes, or the length of a permutation.
  static size_t sizedArgument(const Stack &arguments) {
    auto determines = [](const IValue &value) {
      return value.isTensor() || value.isIntList();
    };
    auto found = std::ranges::find_if(arguments, determines);
    return found == arguments.end() ? 0 : size_t(found - arguments.begin());
  }

  /// Replaces `value`, such an argument, by one for `sizes`, or for new memory
  /// of the same sizes.
  static void resize(IValue &value, at::OptionalIntArrayRef sizes) {
    if (value.isTensor()) {
      const at::Tensor &memory = value.toTensor();
      DrawnMemory like{memory.sizes().vec(), Strides(memory.strides()),
                       memory.options()};
      value = like.allocate(sizes);
    } else if (sizes && value.isInt()) {
      value = sizes->front();
    } else if (sizes) {
      value = sizes->vec();
    }
  }

  const OpRecord &record;
  /// The op that is called instead of the functional op, because the functional
  /// op draws into a copy without gaps.
  std::optional<OperatorHandle> inPlace;
};

/// Returns the factor by which kept elements are multiplied. `F.dropout` on the
/// CPU divides a mask of the input's dtype by `keep`, the probability of
/// keeping an element, which rounds differently from 1 / `keep` in double
/// precision.
double dropoutScale(at::ScalarType dtype, double keep) {
  if (keep == 0)
    return 0;
  float rounded = 1.0F / float(keep);
  switch (dtype) {
  case at::kFloat:
    return rounded;
  case at::kBFloat16:
    return float(at::BFloat16(rounded));
  case at::kHalf:
    return float(at::Half(rounded));
  default:
    return 1 / keep;
  }
}

/// Scales the elements that are kept and zeros all others. Traces the backward
/// op, which performs the same computation.
at::Tensor scaledDropout(const at::Tensor &input, const at::Tensor &mask,
                         double keep) {
  double scale = dropoutScale(input.scalar_type(), keep);
  return traceOp("aten::native_dropout_backward", {input, mask, IValue(scale)});
}

at::Tensor nativeDropoutBackward(const at::Tensor &gradient,
                                 const at::Tensor &mask, double scale) {
  return scaledDropout(gradient, mask, scale == 0 ? 0 : 1 / scale);
}

std::tuple<at::Tensor, at::Tensor>
nativeDropout(const at::Tensor &input, double p, std::optional<bool> train) {
  auto maskOptions = at::TensorOptions().dtype(at::kBool);
  if (train.has_value() && !*train)
    return {
        traceOp("aten::clone", {input}),
        makeTensor(HostData::takeOver(at::ones(input.sizes(), maskOptions)))};
  at::Tensor mask = drawn(
      [memory = denseMemoryLike(input, at::kBool),
       p](at::OptionalIntArrayRef sizes) {
        return drawBernoulli(memory.allocate(sizes), 1 - p);
      },
      [p] { return bernoulliText(1 - p); });
  // Eager draws before it rejects the dtype.
  checkCast(at::typeMetaToScalarType(at::get_default_dtype()),
            input.scalar_type());
  return {scaledDropout(input, mask, 1 - p), mask};
}

at::Tensor isProbability(const at::Tensor &x) {
  return traceOp("aten::logical_and",
                 {traceOp("aten::ge.Scalar", {x, IValue(0)}),
                  traceOp("aten::le.Scalar", {x, IValue(1)})});
}

/// Draws one uniform number for each probability, in double precision for
/// doubles, as eager does.
at::Tensor bernoulli(const at::Tensor &probabilities,
                     std::optional<at::Generator> generator) {
  at::ScalarType dtype = probabilities.scalar_type();
  TORCH_CHECK_NOT_IMPLEMENTED(
      c10::isFloatingType(dtype) ||
          (probabilities.numel() == 0 && !c10::isComplexType(dtype)),
      "\"bernoulli_tensor_cpu_", c10::isComplexType(dtype) ? "self" : "p",
      "_\" not implemented for '", dtype, "'");
  constexpr const char *message =
      "Expected p_in >= 0 && p_in <= 1 to be true, but got false.  (Could this "
      "error message be improved?  If so, please report an enhancement request "
      "to PyTorch.)";
  if (isRejected(probabilities, [](const at::Tensor &p) {
        return p.min().item<double>() >= 0 && p.max().item<double>() <= 1;
      })) // draws for the elements before the first wrong one
    at::bernoulli(probabilities.cpu(), generator);
  auto options = at::TensorOptions().dtype(dtype == at::kDouble ? at::kDouble
                                                                : at::kFloat);
  at::Tensor uniform = drawn(
      [traced = probabilities.sizes().vec(), options,
       generator](at::OptionalIntArrayRef sizes) {
        return at::empty(sizes.value_or(traced), options)
            .uniform_(0, 1, generator);
      },
      [] { return std::string("uniform(0, 1)"); });
  at::Tensor below = traceOp(
      "aten::lt.Tensor",
      {uniform, checked(probabilities, isProbability(probabilities), message)});
  at::Tensor result =
      traceOp("aten::_to_copy", {below, IValue(int64_t(dtype))});
  // Eager's result is row-major, whatever the strides of the probabilities.
  setGeometry(result, packedStrides(result.sizes()));
  return result;
}

/// `bernoulli` with a number as the probability.
at::Tensor bernoulliOfNumber(const at::Tensor &self, double p,
                             std::optional<at::Generator> generator) {
  return drawn(
      [memory = memoryLike(self, self.scalar_type()), p,
       generator](at::OptionalIntArrayRef sizes) {
        return withoutGaps(drawBernoulli(memory.allocate(sizes), p, generator));
      },
      [p] { return bernoulliText(p); });
}

} // namespace

void torch_ltc::registerRandomKernels(torch::Library &library) {
  library.impl("native_dropout", TORCH_FN(nativeDropout));
  library.impl("native_dropout_backward", TORCH_FN(nativeDropoutBackward));
  library.impl("bernoulli", TORCH_FN(bernoulli));
  library.impl("bernoulli.p", TORCH_FN(bernoulliOfNumber));
  registerDrawsOfTensors(library);
  for (const OpRecord &record : opRecords()) {
    if (record.traceKind != TraceKind::randomTrace ||
        record.handle->hasKernelForDispatchKey(c10::DispatchKey::Lazy) ||
        record.handle->schema().is_mutable())
      continue;
    registerBoxedKernel(record.handle->operator_name(), c10::DispatchKey::Lazy,
                        c10::KernelFunction::makeFromBoxedFunctor(
                            std::make_unique<DrawKernel>(record)));
  }
}
