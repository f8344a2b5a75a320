//===- host_calls.cpp - Commands computed by PyTorch's kernels ------------===//

#include "programs/host_calls.h"

#include "programs/cpu_call.h"
#include "programs/worker_state.h"

#include "torch_ltc-c/runtime.h"

#include <ATen/Functions.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

#include <cstdlib>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>

using namespace torch_ltc;
using c10::IValue;

namespace {

c10::ScalarType scalarType(LtcDType dtype) {
  switch (dtype) {
  case LTC_DTYPE_BOOL:
    return c10::ScalarType::Bool;
  case LTC_DTYPE_UINT8:
    return c10::ScalarType::Byte;
  case LTC_DTYPE_INT8:
    return c10::ScalarType::Char;
  case LTC_DTYPE_INT16:
    return c10::ScalarType::Short;
  case LTC_DTYPE_INT32:
    return c10::ScalarType::Int;
  case LTC_DTYPE_INT64:
    return c10::ScalarType::Long;
  case LTC_DTYPE_FLOAT16:
    return c10::ScalarType::Half;
  case LTC_DTYPE_BFLOAT16:
    return c10::ScalarType::BFloat16;
  case LTC_DTYPE_FLOAT32:
    return c10::ScalarType::Float;
  case LTC_DTYPE_FLOAT64:
    return c10::ScalarType::Double;
  case LTC_DTYPE_COMPLEX64:
    return c10::ScalarType::ComplexFloat;
  case LTC_DTYPE_COMPLEX128:
    return c10::ScalarType::ComplexDouble;
  }
  throw std::runtime_error("a host call has a tensor of an unknown dtype");
}

at::Tensor tensorOf(const LtcHostTensor &tensor) {
  return at::from_blob(tensor.data, at::IntArrayRef(tensor.sizes, tensor.rank),
                       at::TensorOptions().dtype(scalarType(tensor.dtype)));
}

c10::OperatorHandle opOfName(const std::string &name) {
  size_t dot = name.find('.');
  std::string overload = dot == std::string::npos ? "" : name.substr(dot + 1);
  return c10::Dispatcher::singleton().findSchemaOrThrow(
      name.substr(0, dot).c_str(), overload.c_str());
}

c10::TypePtr withoutOptional(c10::TypePtr type) {
  if (auto optional = type->cast<c10::OptionalType>())
    return optional->getElementType();
  return type;
}

/// Reads `LtcHostCall::arguments`.
class ArgumentReader {
public:
  explicit ArgumentReader(const LtcHostCall &call)
      : call(call), rest(call.arguments) {}

  IValue next(const c10::Argument &argument) {
    size_t end = rest.find(';');
    std::string item(rest.substr(0, end));
    rest = end == std::string_view::npos ? "" : rest.substr(end + 1);
    TORCH_CHECK(!item.empty(), call.op, " was stored with fewer arguments");
    std::string text = item.substr(1);
    c10::TypePtr type = withoutOptional(argument.type());
    switch (item[0]) {
    case 'n':
      return argument.default_value() ? *argument.default_value() : IValue();
    case 't':
      return tensorOrNumber(call.inputs[numTensors++], *type);
    case 'l': {
      c10::List<at::Tensor> tensors;
      for (int64_t i = std::stoll(text); i > 0; --i)
        tensors.push_back(tensorOf(call.inputs[numTensors++]));
      return tensors;
    }
    case 'o': {
      c10::List<std::optional<at::Tensor>> tensors;
      for (char isGiven : text)
        tensors.push_back(
            isGiven == '1' ? std::optional(tensorOf(call.inputs[numTensors++]))
                           : std::nullopt);
      return tensors;
    }
    case 'i':
      if (type->kind() == c10::TypeKind::FloatType)
        return double(std::stoll(text));
      return int64_t(std::stoll(text));
    case 'b':
      return text == "1";
    case 'd':
      return std::strtod(text.c_str(), nullptr);
    case 's':
      return text;
    case 'I':
      return integers(text, type);
    case 'D': {
      std::vector<double> numbers;
      for (const std::string &number : split(text))
        numbers.push_back(std::strtod(number.c_str(), nullptr));
      return numbers;
    }
    }
    TORCH_CHECK(false, call.op, " was stored with an argument '", item, "'");
  }

private:
  static IValue tensorOrNumber(const LtcHostTensor &input,
                               const c10::Type &type) {
    at::Tensor tensor = tensorOf(input);
    if (type.kind() == c10::TypeKind::TensorType)
      return tensor;
    at::Scalar number = tensor.item();
    if (type.kind() == c10::TypeKind::FloatType)
      return number.toDouble();
    return number;
  }

  static std::vector<std::string> split(const std::string &text) {
    std::vector<std::string> items;
    for (size_t begin = 0; begin < text.size();) {
      size_t end = std::min(text.find(',', begin), text.size());
      items.push_back(text.substr(begin, end - begin));
      begin = end + 1;
    }
    return items;
  }

  static IValue integers(const std::string &text, const c10::TypePtr &type) {
    std::vector<int64_t> numbers;
    for (const std::string &number : split(text))
      numbers.push_back(std::stoll(number));
    c10::TypePtr element =
        type->castRaw<c10::ListType>()
            ? type->expectRef<c10::ListType>().getElementType()
            : c10::TypePtr();
    if (element && element->kind() == c10::TypeKind::TensorType)
      return c10::List<at::Tensor>(); // an empty list has no element type
    if (!element || element->kind() != c10::TypeKind::BoolType)
      return numbers;
    c10::List<bool> flags;
    for (int64_t number : numbers)
      flags.push_back(number != 0);
    return flags;
  }

  const LtcHostCall &call;
  std::string_view rest;
  size_t numTensors = 0;
};

void store(const at::Tensor &value, const LtcHostTensor &destination) {
  at::Tensor output = tensorOf(destination);
  // Stores zeros for statistics that the CPU kernel leaves empty although the
  // Meta kernel gives them a size.
  if (!value.defined() || value.numel() == 0)
    output.zero_();
  else
    output.copy_(value);
}

/// Kernels by op, registered before the first program runs.
std::map<std::string, HostKernel, std::less<>> &hostKernels() {
  static auto *kernels = new std::map<std::string, HostKernel, std::less<>>;
  return *kernels;
}

HostKernel hostKernel(std::string_view op) {
  auto found = hostKernels().find(op);
  return found == hostKernels().end() ? nullptr : found->second;
}

void (*afterFailure)() = nullptr;

void run(const LtcHostCall &call) {
  torch_ltc::WorkerStateGuard state;
  at::AutoDispatchBelowAutograd noAutograd;
  c10::OperatorHandle op = opOfName(call.op);
  ArgumentReader reader(call);
  torch::jit::Stack stack;
  for (const c10::Argument &argument : op.schema().arguments())
    stack.push_back(reader.next(argument));
  std::vector<at::Tensor> outputs;
  auto readOutputs = [&] {
    for (size_t i = 0; i < op.schema().returns().size(); ++i)
      outputs.push_back(tensorOf(call.outputs[i]));
  };
  if (HostKernel kernel = hostKernel(call.op)) {
    readOutputs();
    return kernel(stack, outputs);
  }
  const OpRecord *record = findOpRecord(call.op);
  if (const auto outOp = record ? cpuCallOf(*record).outOp : std::nullopt) {
    readOutputs();
    std::ranges::move(outputs, std::back_inserter(stack));
    return outOp->redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::CPU),
                                  &stack);
  }
  op.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::CPU), &stack);
  size_t number = 0;
  for (const IValue &value : stack) {
    if (value.isTensorList())
      for (const at::Tensor &tensor : value.toTensorVector())
        store(tensor, call.outputs[number++]);
    else
      store(value.isTensor() ? value.toTensor() : at::Tensor(),
            call.outputs[number++]);
  }
}

LtcStatus hostFunction(const LtcHostCall *call) {
  auto failed = [&](const std::string &message) {
    std::string place =
        *call->location ? " (at " + std::string(call->location) + ")" : "";
    return ltcStatusCreate(
        (std::string(call->op) + ": " + message + place).c_str());
  };
  try {
    run(*call);
  } catch (const c10::Error &error) {
    return failed(error.what_without_backtrace());
  } catch (const std::exception &error) {
    return failed(error.what());
  }
  return nullptr;
}

} // namespace

void torch_ltc::setHostKernel(const std::string &op, HostKernel kernel) {
  hostKernels()[op] = kernel;
}

void torch_ltc::setAfterFailure(void (*release)()) { afterFailure = release; }

void torch_ltc::releaseAfterFailure() {
  if (afterFailure)
    afterFailure();
}

void torch_ltc::registerHostCalls() { ltcSetHostFunction(hostFunction); }
