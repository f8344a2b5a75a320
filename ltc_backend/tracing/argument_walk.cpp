//===- argument_walk.cpp - From dispatcher arguments to a node ------------===//

#include "tracing/argument_walk.h"

#include "compilation/external_backend.h"
#include "events/op_error.h"
#include "graph/live_tensors.h"
#include "ir/tensor_arguments.h"
#include "memory/lazy_device.h"
#include "shape/shape_inference.h"
#include "shape/strides.h"

#include <c10/core/DefaultDtype.h>

using namespace torch_ltc;
using c10::IValue;
using c10::ScalarType;

bool torch_ltc::isSupportedDType(ScalarType type) {
  switch (type) {
  case ScalarType::Bool:
  case ScalarType::Byte:
  case ScalarType::Char:
  case ScalarType::Short:
  case ScalarType::Int:
  case ScalarType::Long:
  case ScalarType::Half:
  case ScalarType::BFloat16:
  case ScalarType::Float:
  case ScalarType::Double:
    return true;
  case ScalarType::ComplexFloat:
  case ScalarType::ComplexDouble:
    // PyTorch's kernels compute complex numbers in our programs.
    return !selectedBackend();
  default:
    return false;
  }
}

std::string torch_ltc::dtypeReason(ScalarType type) {
  if (isSupportedDType(type))
    return "";
  return c10::isComplexType(type) ? "complex numbers"
                                  : c10::str("dtype ", c10::toString(type));
}

ArgumentWalk::ArgumentWalk(const OpRecord &record,
                           c10::ArrayRef<IValue> arguments)
    : record(record), arguments(arguments) {
  for (size_t i = 0; i < record.arguments.size(); ++i)
    visit(record.arguments[i], arguments[i]);
  promoted = at::native::result_type(typeState);
  if (!numberTensorWords.empty())
    setNumberTensorTypes();
  for (const auto &[position, number] : complexNumbers)
    setComplexNumberType(operands[position], number);
}

void ArgumentWalk::visit(const ArgumentSpec &spec, const IValue &value) {
  if (value.isDevice())
    checkLazyDevice(value.toDevice());
  // A call that requests pinned memory runs eagerly, so that eager raises its
  // own error.
  if (value.isBool() && value.toBool() && spec.name == "pin_memory")
    return markUntraceable("pinned memory");
  if (value.isNone() || spec.kind == ArgumentKind::Ignored)
    return attributes.none();
  switch (spec.kind) {
  case ArgumentKind::Tensor:
    return visitTensor(spec, value.toTensor());
  case ArgumentKind::TensorList:
    return visitTensorList(spec, value);
  case ArgumentKind::OptionalTensorList:
    return visitOptionalTensorList(spec, value);
  case ArgumentKind::Scalar:
    return visitScalar(spec, value);
  case ArgumentKind::Number:
    return visitNumber(spec, value);
  case ArgumentKind::NumberList:
    return visitNumberList(spec, value);
  case ArgumentKind::String:
    return attributes.string(value.toStringRef());
  case ArgumentKind::DType: {
    auto type = ScalarType(value.toInt());
    if (!isSupportedDType(type))
      return markUntraceable(dtypeReason(type));
    attributes.header(Tag::dtype);
    return attributes.word(int64_t(type));
  }
  case ArgumentKind::Ignored:
    return;
  }
}

void ArgumentWalk::addOperand(const at::Tensor &tensor) {
  if (!isSupportedDType(tensor.scalar_type()))
    return markUntraceable(dtypeReason(tensor.scalar_type()));
  hasStridedOperand |= !hasPackedStrides(tensor);
  operands.push_back(tensorDataOf(tensor)->value());
}

void ArgumentWalk::visitTensor(const ArgumentSpec &spec,
                               const at::Tensor &tensor) {
  if (!tensor.defined())
    return attributes.none();
  bool isLazy = tensor.device().is_lazy();
  if (!isLazy && (tensor.dim() != 0 || !tensor.device().is_cpu()))
    rejectCpuTensor(spec, tensor);
  if (!isSupportedDType(tensor.scalar_type())) // promotion rejects some dtypes
    return markUntraceable(dtypeReason(tensor.scalar_type()));
  typeState = at::native::update_result_type_state(tensor, typeState);
  if (!isLazy)
    return visitNumberTensor(tensor);
  attributes.operand();
  addOperand(tensor);
}

void ArgumentWalk::visitNumberTensor(const at::Tensor &tensor) {
  ScalarType type = tensor.scalar_type();
  if (!isSupportedDType(type))
    return markUntraceable(dtypeReason(type));
  if (c10::isComplexType(type)) {
    complexNumbers.emplace_back(operands.size(), tensor);
    return addComplexNumber(tensor);
  }
  bool isFloat = c10::isFloatingType(type);
  bool isWrapped = tensor.unsafeGetTensorImpl()->is_wrapped_number();
  // Wrapped floats take part in promotion with the default dtype.
  ScalarType own = type;
  if (isWrapped && isFloat)
    own = c10::get_default_dtype_as_scalartype();
  at::Scalar number = tensor.item();
  scalars.push_back(isFloat ? DynamicScalar::of(number.toDouble())
                            : DynamicScalar::of(number.toLong()));
  numberTensorWords.push_back(attributes.words.size());
  // Bools are marked, because eager rejects `x - True`, but computes `x - 1`.
  bool isBool = type == at::kBool;
  attributes.header(Tag::numberTensor, isFloat | isWrapped << 1 | isBool << 2,
                    uint8_t(own));
}

/// Gives a Python number the dtype in which the op computes, because data isn't
/// a wrapped number in type promotion.
void ArgumentWalk::setComplexNumberType(torch::lazy::Value &operand,
                                        const at::Tensor &number) {
  if (number.unsafeGetTensorImpl()->is_wrapped_number() &&
      number.scalar_type() != promoted)
    operand =
        TensorData::create(HostData::copyOf(number.to(promoted)))->value();
}

/// The dialect has no complex numbers, so the number becomes data.
void ArgumentWalk::addComplexNumber(const at::Tensor &number) {
  if (!isSupportedDType(number.scalar_type()))
    return markUntraceable(dtypeReason(number.scalar_type()));
  attributes.operand();
  operands.push_back(TensorData::create(HostData::copyOf(number))->value());
}

/// Gives number tensors (CPU tensors of rank 0) the dtype in which the op
/// computes; ops without type promotion convert them to the dtype of their
/// first operand. Bools keep their dtype, because a condition or a mask must be
/// a bool.
void ArgumentWalk::setNumberTensorTypes() {
  ScalarType type = promoted;
  switch (record.dtypeRule) {
  case DTypeRule::selfDType:
    if (operands.empty())
      return;
    type = operands[0].shape().scalar_type();
    break;
  case DTypeRule::promote_floatDType:
    if (c10::isIntegralType(type, /*includeBool=*/true))
      type = c10::get_default_dtype_as_scalartype();
    break;
  case DTypeRule::promoteDType:
  case DTypeRule::booleanDType:
  case DTypeRule::div_modeDType:
    break;
  default:
    return; // the numbers keep their own types
  }
  type = c10::toRealValueType(type); // the number itself is real
  for (size_t position : numberTensorWords) {
    uint64_t header = uint64_t(attributes.words[position]);
    if (ScalarType(header >> 8 & 0xff) == at::kBool)
      continue;
    header = (header & ~uint64_t(0xff00)) | uint64_t(uint8_t(type)) << 8;
    attributes.words[position] = Word(header);
  }
}

void ArgumentWalk::visitTensorList(const ArgumentSpec &spec,
                                   const IValue &value) {
  auto tensors = value.toTensorVector();
  attributes.header(Tag::operandList, uint32_t(tensors.size()));
  for (const at::Tensor &tensor : tensors) {
    if (!tensor.defined())
      return markUntraceable("an undefined tensor in a list");
    if (!tensor.device().is_lazy())
      rejectCpuTensor(spec, tensor);
    if (!isSupportedDType(tensor.scalar_type()))
      return markUntraceable(dtypeReason(tensor.scalar_type()));
    typeState = at::native::update_result_type_state(tensor, typeState);
    addOperand(tensor);
  }
}

void ArgumentWalk::visitOptionalTensorList(const ArgumentSpec &,
                                           const IValue &value) {
  auto tensors = toOptionalTensors(value);
  attributes.header(Tag::optionalOperandList, uint32_t(tensors.size()));
  size_t maskBegin = attributes.words.size();
  attributes.words.resize(maskBegin + (tensors.size() + 63) / 64, 0);
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (!tensors[i] || !tensors[i]->defined())
      continue;
    const at::Tensor &tensor = *tensors[i];
    if (tensor.scalar_type() == ScalarType::Bool ||
        tensor.scalar_type() == ScalarType::Byte)
      markUntraceable(
          "a mask as index: the number of selected elements depends on values");
    attributes.words[maskBegin + i / 64] |= Word(1ull << (i % 64));
    // Index tensors may be on the CPU, as with other devices.
    if (tensor.device().is_lazy())
      addOperand(tensor);
    else
      operands.push_back(TensorData::create(HostData::copyOf(tensor))->value());
  }
}

void ArgumentWalk::visitScalar(const ArgumentSpec &spec, const IValue &value) {
  if (value.isUnsigned() && !value.isInt())
    return markUntraceable("a number above the largest int64");
  if (isPromotedNumber(spec.name))
    typeState =
        at::native::update_result_type_state(value.toScalar(), typeState);
  if (value.isBool())
    return attributes.boolean(value.toBool());
  if (value.isComplexDouble())
    return addComplexNumber(
        at::scalar_tensor(value.toScalar(), at::kComplexDouble));
  bool isDefault =
      spec.defaultValue && spec.defaultValue->isScalar() &&
      spec.defaultValue->toScalar().equal(
          value.isDouble() ? value.toDouble() : double(value.toInt()));
  bool isConstant = spec.isConstantAtZero && value.toScalar().toDouble() == 0;
  if (!spec.isDynamicScalar || isDefault || isConstant)
    return value.isDouble() ? attributes.floating(value.toDouble())
                            : attributes.integer(value.toInt());
  if (value.isDouble()) {
    addDynamicFloat(value.toDouble());
  } else {
    attributes.header(Tag::dynamicInt);
    scalars.push_back(DynamicScalar::of(value.toInt()));
  }
}

void ArgumentWalk::addDynamicFloat(double value) {
  attributes.header(Tag::dynamicFloat);
  scalars.push_back(DynamicScalar::of(value));
}

void ArgumentWalk::visitNumber(const ArgumentSpec &spec, const IValue &value) {
  if (value.isBool())
    attributes.boolean(value.toBool());
  else if (value.isDouble() && spec.isDynamicScalar)
    addDynamicFloat(value.toDouble());
  else if (value.isDouble())
    attributes.floating(value.toDouble());
  else if (value.isInt())
    attributes.integer(spec.isDim ? normalizedDim(spec, value.toInt())
                                  : value.toInt());
  else
    markUntraceable("argument '" + spec.name + "' of an unknown kind");
}

void ArgumentWalk::visitNumberList(const ArgumentSpec &spec,
                                   const IValue &value) {
  if (value.isIntList()) {
    auto numbers = value.toIntVector();
    if (spec.isDim)
      for (int64_t &dim : numbers)
        dim = normalizedDim(spec, dim);
    attributes.integers(numbers);
  } else if (value.isDoubleList()) {
    auto numbers = value.toDoubleVector();
    attributes.header(Tag::floatings, uint32_t(numbers.size()));
    for (double number : numbers)
      attributes.word(std::bit_cast<Word>(number));
  } else if (value.isBoolList()) {
    auto flags = value.toBoolList();
    attributes.header(Tag::booleans, uint32_t(flags.size()));
    for (bool flag : flags)
      attributes.word(flag);
  } else if (value.isInt()) { // int[1] passed as a number
    attributes.integers(normalizedDim(spec, value.toInt()));
  } else {
    markUntraceable("argument '" + spec.name + "' with symbolic sizes");
  }
}

static bool isGradientOfView(ShapeRule rule) {
  return rule == ShapeRule::select_backwardShape ||
         rule == ShapeRule::slice_backwardShape ||
         rule == ShapeRule::diagonal_backwardShape ||
         rule == ShapeRule::unfold_backwardShape;
}

/// Returns `dim` counted from the start, so that -1 and 2 give the same program
/// for a tensor of rank 3. A dim out of range is returned unchanged: torch's
/// own check then raises the error.
int64_t ArgumentWalk::normalizedDim(const ArgumentSpec &spec,
                                    int64_t dim) const {
  if (!spec.isDim || dim >= 0 || operands.empty())
    return dim;
  // The `dim` of a view's gradient refers to the viewed tensor.
  int64_t rank = isGradientOfView(record.shapeRule)
                     ? int64_t(arguments[1].toListRef().size())
                     : operands[0].shape().dim();
  bool addsDim = record.shapeRule == ShapeRule::unsqueezeShape ||
                 record.shapeRule == ShapeRule::stackShape;
  int64_t range = addsDim ? rank + 1 : std::max<int64_t>(rank, 1);
  return dim < -range ? dim : dim + range;
}

void ArgumentWalk::rejectCpuTensor(const ArgumentSpec &spec,
                                   const at::Tensor &tensor) const {
  TORCH_CHECK(false,
              "Expected all tensors to be on the same device, but found at "
              "least two devices, lazy:0 and ",
              tensor.device(), "! Argument '", spec.name, "' of ", record.name,
              " (", tensor.scalar_type(), " ", tensor.sizes(),
              ") isn't on 'lazy': move it with .to('lazy') first.",
              opSuffix(record.name));
}
